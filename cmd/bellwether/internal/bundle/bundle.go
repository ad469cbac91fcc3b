// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle provides the commands that build, check, try and publish bundles.
package bundle

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
)

func completeTwoDirs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) < 2 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// app is the environment of the commands in this package.
type app struct{ *command.Env }

// Command returns the command bundle with its subcommands.
func Command(env *command.Env) *cobra.Command {
	a := &app{env}
	var access registry.Flags
	push := &cobra.Command{
		Use: "push DIR REF", Short: "Push a bundle folder to a registry and print its digest",
		Args:              command.ExactArgs("the bundle's folder", "the reference to push it to"),
		ValidArgsFunction: command.CompleteDir,
		Example:           "  bellwether bundle push ./bundle registry.example.com/bundles/echo-operator:1.1.0",
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(registry.CheckFolder(args[0]), registry.CheckTarget(args[1])); err != nil {
				return err
			}
			// A bundle that cannot be read must not get a tag, because a catalog or a user could use the tag.
			if _, err := ReadFolder(args[0]); err != nil {
				return err
			}
			digest, err := oci.NewClient(oci.Options{}).PushBundle(c.Context(), args[0], args[1], access.Access())
			return registry.PrintDigest(a.Env, digest, err)
		},
	}
	access.Add(push)
	return command.NewParent("bundle", "Build, check and publish bundles", []string{"bundles"}, push,
		a.newBuildCommand(), a.newLintCommand(), a.newDiffCommand(), a.newScorecardCommand(),
		a.newInitCommand(), a.AddClusterFlags(a.newTryCommand()))
}
