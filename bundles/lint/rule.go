// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint checks registry+v1 bundles before they are published. It reports faults that would make an installation
// fail, leave a cluster without an upgrade, or lose data.
//
// Its input is a bundle from package bundles, all versions that were published before it, and the time. The package has
// no side effects: it must not open files outside the given fs.FS, access a registry or read the clock. Only a reporter
// produces output.
//
// Rules are values. Each rule has an id that never changes, and tested examples in examples/<id>.bad.txtar and
// examples/<id>.good.txtar. The files of an example replace or extend those of the bundle in testdata/base (see
// examples_test.go for the format).
package lint

import (
	"cmp"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Severity is the severity of a finding.
type Severity string

// The severities, from the most to the least severe.
const (
	// Error is a fault that breaks an installation, an upgrade or users of the operator, or that loses data.
	Error Severity = "error"
	// Warning is a fault that has an effect only after another failure.
	Warning Severity = "warning"
	// Info is a fact that may be useful for the author.
	Info Severity = "info"
)

// severities are all severities, the most severe first.
var severities = []Severity{Error, Warning, Info}

// AtLeast reports whether s is at least as severe as t. An unknown severity is the least severe.
func (s Severity) AtLeast(t Severity) bool {
	i, j := slices.Index(severities, s), slices.Index(severities, t)
	return i >= 0 && (j < 0 || i <= j)
}

// Rule is a check for one kind of fault in a bundle.
type Rule struct {
	// ID is a short name in lower case with hyphens, such as crd-removed-field. Waivers contain it, so it must
	// never change.
	ID string
	// Title describes the fault in a few words, without a full stop.
	Title string
	// Severity is the severity of the rule's findings, unless a finding has its own severity.
	Severity Severity
	// Why describes the consequences, and Fix the solution. Both are sentences in Markdown.
	Why, Fix string
	// Bad and Good are examples in txtar format; Rules fills them in from the files in examples/.
	Bad, Good string
	// Check returns the findings. It does not set Finding.Rule, and sets Finding.Severity only if it differs from the
	// rule's severity. Check is nil in the rules about waivers, which Run implements.
	Check func(*Input) []Finding
}

// Input is the input of rules. Rules must not change it.
type Input struct {
	Bundle *bundles.Bundle
	// History are all published versions, the oldest first, without Bundle. They may be reduced.
	History []*bundles.Bundle
	// Archive is the archive that the versions of the history were reduced with; it makes comparisons fast. It may
	// be nil.
	Archive *crd.Archive
	// Unreadable are published versions that could not be read. They are not in History.
	Unreadable []Unreadable
	// Predecessor is the version that Bundle upgrades; nil if there is none.
	Predecessor *bundles.Bundle
	// Files is the folder of the bundle; nil if the bundle was not read from a folder.
	Files fs.FS
	// Images returns facts about the bundle's images from registries; nil if registries were not queried.
	Images ImageIndex
}

// Unreadable is a published version that could not be read.
type Unreadable struct {
	// Name identifies the version: a folder, an image, or the name of a bundle.
	Name string
	// Err is the reason; it names the file.
	Err error
}

// ImageIndex returns facts about images in registries.
type ImageIndex interface {
	// Platforms returns the platforms that an image was built for as "os/architecture", such as linux/arm64. It returns
	// an error if the platforms are not known.
	Platforms(image string) ([]string, error)
}

// Finding is one place in a bundle that violates a rule.
type Finding struct {
	// Rule and Severity are set by Run.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is relative to the bundle's folder; empty if the finding is about the whole bundle.
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 means unknown.
	Line int `json:"line,omitempty"`
	// Path is the field, such as spec.versions[0].schema; empty if the finding is about the whole file.
	Path string `json:"path,omitempty"`
	// Message describes the fault in one sentence without a full stop.
	Message string `json:"message"`

	// earlier is true if the finding concerns only published versions that do not upgrade to the bundle directly.
	earlier bool
}

// newObjectFinding returns a finding at a field of an object. If the object is nil, the finding is about the
// whole bundle.
func newObjectFinding(o *bundles.Object, message string, path ...any) Finding {
	f := Finding{Message: message, Path: bundles.FieldPath(path...)}
	if o != nil {
		f.File, f.Line = o.File, o.Position(path...)
	}
	return f
}

//go:embed examples
var examples embed.FS

// Rules returns all rules, in the order in which they run and are listed.
func Rules() []Rule {
	rules := slices.Concat(
		listOperatorRules(),
		listSupplyChainRules(),
		listCompatibilityRules(),
		listCRDRules(),
		listRBACRules(),
		listRuntimeRules(),
		listWebhookRules(),
		listSLORules(), listSupportRules(),
		listWaiverRules(),
	)
	for i := range rules {
		rules[i].Bad = cmp.Or(rules[i].Bad, readExample(rules[i].ID, "bad"))
		rules[i].Good = cmp.Or(rules[i].Good, readExample(rules[i].ID, "good"))
	}
	return rules
}

// readExample returns an embedded example; empty if there is none. A test checks that each rule has examples.
func readExample(id, quality string) string {
	text, err := examples.ReadFile("examples/" + id + "." + quality + ".txtar")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text)) + "\n"
}
