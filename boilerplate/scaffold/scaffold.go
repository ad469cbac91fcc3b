// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/afero"
	yamlstore "sigs.k8s.io/kubebuilder/v4/pkg/config/store/yaml"
	configv3 "sigs.k8s.io/kubebuilder/v4/pkg/config/v3"
	"sigs.k8s.io/kubebuilder/v4/pkg/machinery"

	"github.com/bellwether-dev/bellwether/boilerplate/conventions"
	"github.com/bellwether-dev/bellwether/boilerplate/run"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// ErrNotEmpty means that the folder is not empty.
var ErrNotEmpty = errors.New("the folder is not empty")

// templates are in folders that determine when they are written: all (always), own (for new types), given (for existing
// types), and webhook (with a webhook).
//
//go:embed templates
var templates embed.FS

// layout is the project layout that kubebuilder's commands recognize, so that they can add kinds and webhooks.
const layout = "go.kubebuilder.io/v4"

// Create writes an operator into a folder, and subscribes it to the conventions of this program. The folder must be
// empty, contain only a git repository, or not exist. Errors wrap ErrOptions or ErrNotEmpty, or are errors of the file
// system; after an error, all written files are removed.
func Create(ctx context.Context, dir string, o Options, now time.Time) (err error) {
	o, err = o.complete()
	if err != nil {
		return err
	}
	existed, err := checkEmpty(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeCreated(dir, existed))
		}
	}()
	v := newValues(o)
	if err := writeFiles(dir, v); err != nil {
		return err
	}
	return subscribe(ctx, dir, v, now)
}

// checkEmpty reports whether the folder exists. It returns an error if the folder is not empty.
func checkEmpty(dir string) (bool, error) {
	entries, err := listEntries(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return false, fmt.Errorf("%w: %s is a file", ErrNotEmpty, dir)
	case err != nil:
		return false, fmt.Errorf("read folder: %w", err)
	case len(entries) > 0:
		return false, fmt.Errorf("%w: %s has %s", ErrNotEmpty, dir, entries[0].Name())
	}
	return true, nil
}

// listEntries returns the entries of a folder except the git repository.
func listEntries(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }), err
}

// removeCreated removes all entries from a folder, and the folder itself if it did not exist before.
func removeCreated(dir string, existed bool) error {
	if !existed {
		return os.RemoveAll(dir)
	}
	entries, err := listEntries(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// file is one file of the operator, for kubebuilder's scaffolding library. Its template uses the fields of values.
type file struct {
	machinery.TemplateMixin
	*values
}

// SetTemplateDefaults implements machinery.Template.
func (*file) SetTemplateDefaults() error { return nil }

// writeFiles writes the files of the operator and the configuration of kubebuilder.
func writeFiles(dir string, v *values) error {
	disk := machinery.Filesystem{FS: afero.NewBasePathFs(afero.NewOsFs(), dir)}
	store := yamlstore.New(disk)
	if err := store.New(configv3.Version); err != nil {
		return fmt.Errorf("create kubebuilder's configuration: %w", err)
	}
	config := store.Config()
	err := errors.Join(config.SetProjectName(v.Name), config.SetRepository(v.Module), config.SetDomain(v.Domain),
		config.SetPluginChain([]string{layout}), config.AddResource(v.newResource()))
	if err != nil {
		return fmt.Errorf("fill kubebuilder's configuration: %w", err)
	}
	builders, err := v.listBuilders()
	if err != nil {
		return err
	}
	if err := machinery.NewScaffold(disk, machinery.WithConfig(config)).Execute(builders...); err != nil {
		return fmt.Errorf("write the operator: %w", err)
	}
	if v.Types != nil {
		for name, text := range v.Types.Files {
			place := filepath.Join("api", v.Version, name)
			if err := afero.WriteReader(disk.FS, place, bytes.NewReader(text)); err != nil { // makes the folder
				return fmt.Errorf("copy the types: %w", err)
			}
		}
	}
	if err := store.Save(); err != nil {
		return fmt.Errorf("write kubebuilder's configuration: %w", err)
	}
	return nil
}

// listBuilders returns the templates that the options need.
func (v *values) listBuilders() ([]machinery.Builder, error) {
	wanted := map[string]bool{"all": true, "own": v.Own, "given": !v.Own, "webhook": v.Webhook}
	var out []machinery.Builder
	err := fs.WalkDir(templates, "templates", func(name string, d fs.DirEntry, err error) error {
		folder, place, _ := strings.Cut(strings.TrimPrefix(name, "templates/"), "/")
		if err != nil || d.IsDir() || !wanted[folder] {
			return err
		}
		text, err := templates.ReadFile(name)
		f := &file{values: v}
		f.Path, f.TemplateBody, f.IfExistsAction = filepath.FromSlash(v.formatPath(place)), string(text),
			machinery.Error
		f.SetDelim("[[", "]]")
		out = append(out, f)
		return err
	})
	return out, err
}

// subscribe subscribes the operator to the conventions and writes their files.
func subscribe(ctx context.Context, dir string, v *values, now time.Time) error {
	r, err := run.Open(dir, source.Loader{Builtin: conventions.Files})
	if !errors.Is(err, run.ErrNotSubscribed) {
		return fmt.Errorf("open the new operator: %w", err)
	}
	defer func() { _ = r.Tree.Close() }()
	for _, name := range []string{"go", "docs", "ci-github", "operator"} {
		r.Subscription.Conventions = append(r.Subscription.Conventions,
			subscription.Use{Name: name, Source: subscription.Builtin})
	}
	scope := map[bool]string{true: "cluster", false: "namespaced"}[v.Cluster]
	p, err := r.Plan(ctx, run.Options{
		Now: now,
		Set: map[string]string{
			"module": v.Module, "generators": "true", "project": v.DisplayName, "approvers": v.Team,
			"operator": v.Name, "image": v.Image, "scope": scope, "group": v.Group, "resources": v.Plural,
			"metricsPrefix": v.Prefix, "targets": "build,test,lint,validate,bundle",
		},
	})
	if err != nil {
		return fmt.Errorf("subscribe to conventions: %w", err)
	}
	journal, err := r.Tree.Begin(p.Changes, "")
	if err == nil {
		err = errors.Join(r.Tree.Apply(journal), r.Tree.Finish())
	}
	if err != nil {
		return fmt.Errorf("write the files of conventions: %w", err)
	}
	return nil
}
