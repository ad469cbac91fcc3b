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
	"github.com/bellwether-dev/bellwether/explain"
)

// States is the flag --state of a list. It selects the objects that have one of the marks.
type States struct {
	nouns    string
	possible []explain.Mark
	words    []string
	// Wanted are the selected marks, after Check. If it is empty, all objects are listed.
	Wanted []explain.Mark
}

// Add adds the flag to a command that lists objects. nouns is the plural of what is listed, and possible are the
// marks that the objects can have.
func (s *States) Add(c *cobra.Command, nouns string, possible []explain.Mark) {
	s.nouns, s.possible = nouns, possible
	c.Flags().StringSliceVar(&s.words, "state", nil, "List only "+nouns+" with one of these marks, separated by "+
		"commas: "+strings.Join(explain.MarkWords(possible), ", ")+".")
	_ = c.RegisterFlagCompletionFunc("state", s.completeWords)
}

// completeWords completes the last word of a list that is separated by commas, without the
// words that the list already has.
func (s *States) completeWords(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	// The last word is incomplete; prefix has the complete words before it.
	prefix, given := typed[:strings.LastIndex(typed, ",")+1], strings.Split(typed, ",")
	var out []string
	for _, word := range explain.MarkWords(s.possible) {
		if !slices.Contains(given[:len(given)-1], word) {
			out = append(out, prefix+word)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Check sets Wanted. It returns an error for a word that is not a mark, or a mark that these objects never have: the
// list would be empty, which looks as if there were no such objects.
func (s *States) Check() error {
	var err error
	if s.Wanted, err = explain.ParseMarks(s.words, s.possible); err != nil {
		return exit.Hintf(s.nouns+" have these: "+strings.Join(explain.MarkWords(s.possible), ","),
			"invalid value of --state: %w", err)
	}
	return nil
}

// ReadMarks reads the data for the marks of a list: all installs, and all clusters if clusters is nil. If the user is
// not permitted to read them, the marks are incomplete, and ReadMarks prints a warning. It reads nothing if the output
// is data and no mark is selected, because then the marks are not shown.
func (a *Env) ReadMarks(ctx context.Context, h *hub.Client, clusters []v1alpha1.FleetCluster, s *States,
	isData bool) (*explain.FleetMarks, error) {
	if isData && len(s.Wanted) == 0 {
		return explain.NewFleetMarks(clusters, nil), nil
	}
	list := &v1alpha1.OperatorInstallList{}
	err := h.List(ctx, list)
	if err == nil && clusters == nil {
		clusters, err = hub.ListClusters(ctx, h)
	}
	if apierrors.IsForbidden(err) {
		a.Warn("You may not list the clusters and OperatorInstalls of the whole hub: marks are not complete.\n")
		err = nil
	}
	return explain.NewFleetMarks(clusters, list.Items), err
}
