// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/explain/marks"
)

// States is the flag --state of a list: only what has one of the marks is listed.
type States struct {
	nouns    string
	possible []marks.Mark
	words    []string
	// Wanted are the marks, after Check; none: everything is listed.
	Wanted []marks.Mark
}

// Add adds the flag to a command that lists objects of that noun, which can have some of the marks.
func (s *States) Add(c *cobra.Command, nouns string, possible []marks.Mark) {
	s.nouns, s.possible = nouns, possible
	c.Flags().StringSliceVar(&s.words, "state", nil, "List only "+nouns+" with one of these marks, separated by "+
		"commas: "+strings.Join(marks.Words(possible), ", ")+".")
	_ = c.RegisterFlagCompletionFunc("state", s.completeWords)
}

// completeWords completes the last one of the words before it.
func (s *States) completeWords(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, given := typed[:strings.LastIndex(typed, ",")+1], strings.Split(typed, ",")
	var out []string
	for _, word := range marks.Words(s.possible) {
		if !slices.Contains(given[:len(given)-1], word) {
			out = append(out, before+word)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Check returns an error for a word that is no mark, or one that these objects never have: nothing would be listed,
// which looks as if there were none.
func (s *States) Check() error {
	var err error
	if s.Wanted, err = marks.Parse(s.words, s.possible); err != nil {
		return exit.Hintf(s.nouns+" have these: "+strings.Join(marks.Words(s.possible), ","),
			"invalid value of --state: %w", err)
	}
	return nil
}

// Marks reads what the marks of a list are made of: all installs, and all clusters unless they are given. What the user
// may not read has no marks, which is said on stderr. Where nobody sees the marks, nothing is read.
func (a *Env) Marks(ctx context.Context, h *hub.Client, clusters []v1alpha1.FleetCluster, s *States,
	isData bool) (*marks.Fleet, error) {
	if isData && len(s.Wanted) == 0 {
		return marks.Group(clusters, nil), nil
	}
	list := &v1alpha1.OperatorInstallList{}
	err := h.List(ctx, list)
	if err == nil && clusters == nil {
		clusters, err = hub.Clusters(ctx, h)
	}
	if apierrors.IsForbidden(err) {
		a.Warn("You may not list the clusters and OperatorInstalls of the whole hub: marks are not complete.\n")
		err = nil
	}
	return marks.Group(clusters, list.Items), err
}
