// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet checks and updates the boilerplate of many repositories. An update is a branch with one commit, which
// is pushed, and a pull request for it, which is opened with GitHub's API or with a command of the user. The package
// must not run programs of a repository, must not change branches that people have pushed to, and prints nothing.
package fleet

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
)

// Repository is a repository in a list.
type Repository struct {
	Name   string   `json:"name"`             // default: the last part of Source
	Source string   `json:"source"`           // a remote's URL, or a local clone's folder, relative to the list
	Branch string   `json:"branch,omitempty"` // the branch to update; default: the default branch of the remote
	Labels []string `json:"labels,omitempty"` // labels of its pull requests, in addition to the standard labels
}

// Read reads a list of repositories. Errors about its content wrap subscription.ErrInvalid.
func Read(file string) ([]Repository, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read repositories: %w", err)
	}
	var list struct {
		subscription.Header `yaml:",inline"`
		Repositories        []Repository
	}
	if err := subscription.Decode(text, "Repositories", &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range list.Repositories {
		r := &list.Repositories[i]
		err := r.complete(filepath.Dir(file))
		if err == nil && slices.ContainsFunc(list.Repositories[:i],
			func(o Repository) bool { return strings.EqualFold(o.Name, r.Name) }) {
			err = fmt.Errorf("two repositories are named %s: set the name of one", r.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", file, subscription.ErrInvalid, err)
		}
	}
	return list.Repositories, nil
}

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	// urlPattern matches the URLs of git remotes.
	urlPattern = regexp.MustCompile(`^([a-z+]+://|[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:)`)
)

// complete sets the defaults, makes the folder of a local clone absolute, and returns an error for invalid fields. dir
// is the folder of the list.
func (r *Repository) complete(dir string) error {
	r.Name = cmp.Or(r.Name, strings.TrimSuffix(path.Base(filepath.ToSlash(r.Source)), ".git"))
	if r.Source == "" || !namePattern.MatchString(r.Name) {
		return fmt.Errorf("repository %q: the source %q is empty, or the name is not of letters, digits and ._-",
			r.Name, r.Source)
	}
	if u, err := url.Parse(r.Source); err == nil && strings.Contains(u.User.String(), ":") {
		return fmt.Errorf("repository %s: its URL has a password: leave it to a credential helper of git", r.Name)
	}
	var err error
	if r.isFolder() {
		if !filepath.IsAbs(r.Source) {
			r.Source = filepath.Join(dir, r.Source)
		}
		r.Source, err = filepath.Abs(r.Source)
	}
	return err
}

// isFolder reports whether the source is a local folder and not a URL.
func (r *Repository) isFolder() bool { return !urlPattern.MatchString(r.Source) }
