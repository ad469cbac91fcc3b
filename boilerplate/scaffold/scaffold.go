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

// ErrNotEmpty says that there is something in the folder.
var ErrNotEmpty = errors.New("the folder is not empty")

// templates are in folders that say when they are written: all, always; own, for new types; given, for types that
// exist already; webhook, with a webhook.
//
//go:embed templates
var templates embed.FS

// layout is what kubebuilder's own commands take the project for, so that they can add kinds and webhooks to it.
const layout = "go.kubebuilder.io/v4"

// Create writes an operator into a folder that is empty, has nothing but a git repository, or does not exist, and
// subscribes it to the conventions of this program. Errors wrap ErrOptions or ErrNotEmpty, or are those of the file
// system; nothing is left after one.
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
			err = errors.Join(err, empty(dir, existed))
		}
	}()
	v := newValues(o)
	if err := write(dir, v); err != nil {
		return err
	}
	return subscribe(ctx, dir, v, now)
}

// checkEmpty reports whether the folder exists.
func checkEmpty(dir string) (bool, error) {
	entries, err := list(dir)
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

// list returns what is in a folder besides a git repository.
func list(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" }), err
}

// empty takes back what was written into a folder that was empty or did not exist.
func empty(dir string, existed bool) error {
	if !existed {
		return os.RemoveAll(dir)
	}
	entries, err := list(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// file is one file of the operator, for kubebuilder's machinery. Its template sees the values by their names.
type file struct {
	machinery.TemplateMixin
	*values
}

// SetTemplateDefaults implements machinery.Template.
func (*file) SetTemplateDefaults() error { return nil }

// write writes the files of the operator itself, and those of kubebuilder.
func write(dir string, v *values) error {
	disk := machinery.Filesystem{FS: afero.NewBasePathFs(afero.NewOsFs(), dir)}
	store := yamlstore.New(disk)
	if err := store.New(configv3.Version); err != nil {
		return fmt.Errorf("create kubebuilder's configuration: %w", err)
	}
	config := store.Config()
	err := errors.Join(config.SetProjectName(v.Name), config.SetRepository(v.Module), config.SetDomain(v.Domain),
		config.SetPluginChain([]string{layout}), config.AddResource(v.resource()))
	if err != nil {
		return fmt.Errorf("fill kubebuilder's configuration: %w", err)
	}
	builders, err := v.builders()
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

// builders are the templates that these options need.
func (v *values) builders() ([]machinery.Builder, error) {
	wanted := map[string]bool{"all": true, "own": v.Own, "given": !v.Own, "webhook": v.Webhook}
	var out []machinery.Builder
	err := fs.WalkDir(templates, "templates", func(name string, d fs.DirEntry, err error) error {
		folder, place, _ := strings.Cut(strings.TrimPrefix(name, "templates/"), "/")
		if err != nil || d.IsDir() || !wanted[folder] {
			return err
		}
		text, err := templates.ReadFile(name)
		f := &file{values: v}
		f.Path, f.TemplateBody, f.IfExistsAction = filepath.FromSlash(v.place(place)), string(text), machinery.Error
		f.SetDelim("[[", "]]")
		out = append(out, f)
		return err
	})
	return out, err
}

// subscribe has the conventions write their files.
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
