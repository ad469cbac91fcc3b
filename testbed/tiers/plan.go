// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// modules are the folders of the modules whose tests the table has; the longest first.
var modules = []string{"testbed/components/blocks", "testbed/sigstore", "testbed", "."}

// Job is one call of `go test`.
type Job struct {
	// Module is the folder of the module, from the root of the tree.
	Module string
	// Folders are those of the packages, from the root of the tree.
	Folders []string
	// Run is the expression that selects the tests; empty for all of them.
	Run string
}

// packages returns the packages as the go command takes them in the job's module.
func (j Job) packages() []string {
	packages := make([]string, 0, len(j.Folders))
	for _, folder := range j.Folders {
		packages = append(packages, "./"+strings.TrimPrefix(strings.TrimPrefix(folder, j.Module), "/"))
	}
	return packages
}

func moduleOf(folder string) string {
	for _, module := range modules {
		if folder == module || strings.HasPrefix(folder, module+"/") {
			return module
		}
	}
	return "."
}

// jobsOf returns a job for each package that has tests of the tier.
func jobsOf(entries []Entry, tier Tier) []Job {
	names, rest := map[string][]string{}, map[string]bool{}
	for _, e := range entries {
		switch {
		case e.Fate != "":
		case e.Tier == tier:
			names[e.Folder] = append(names[e.Folder], e.Name)
		case e.Tier == Test || e.Tier == Cluster: // tests of the others are not even compiled
			rest[e.Folder] = true
		}
	}
	var jobs []Job
	for folder, tests := range names {
		job := Job{Module: moduleOf(folder), Folders: []string{folder}}
		if rest[folder] {
			job.Run = selectTests(tests)
		}
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b Job) int { return strings.Compare(a.Folders[0], b.Folders[0]) })
	return jobs
}

// mergeWhole merges the jobs of a module that run all tests of their packages: one call of the go command does.
func mergeWhole(jobs []Job) []Job {
	var merged []Job
	whole := map[string]int{}
	for _, job := range jobs {
		at, ok := whole[job.Module]
		if ok && job.Run == "" {
			merged[at].Folders = append(merged[at].Folders, job.Folders...)
			continue
		}
		if job.Run == "" {
			whole[job.Module] = len(merged)
		}
		merged = append(merged, job)
	}
	return merged
}

// selectTests returns the expression that selects tests by their names.
func selectTests(names []string) string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, regexp.QuoteMeta(name))
	}
	slices.Sort(quoted)
	return "^(" + strings.Join(slices.Compact(quoted), "|") + ")$"
}

// importPrefix is the path of the module "."; those of the others begin with it, too.
const importPrefix = "github.com/bellwether-dev/bellwether"

func importPathOf(folder string) string { return path.Join(importPrefix, folder) }

// folderOf returns the folder of a package, from the root of the tree.
func folderOf(importPath string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(importPath, importPrefix), "/"))
}

// Folders returns the folders of the packages that have tests of a tier.
func Folders(entries []Entry, tier Tier) []string {
	var folders []string
	for _, job := range jobsOf(entries, tier) {
		folders = append(folders, job.Folders...)
	}
	return folders
}

// Below returns the entries whose tests are in a folder or below it; all of them if the folder is empty.
func Below(entries []Entry, folder string) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		return folder != "" && e.Folder != folder && !strings.HasPrefix(e.Folder, folder+"/")
	})
}
