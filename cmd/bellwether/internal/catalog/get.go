// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

func (a *app) newGetCommand() *cobra.Command {
	var out command.Output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a catalog of the hub with its installed and blocked versions",
		Long: `Show an OperatorCatalog of the hub: the digest in use, the versions that clusters
run, the blocked versions with a proposal for the clusters that run them, and the
possible rollbacks of each version.

To block a version on all clusters immediately, add it to spec.blocks of the
OperatorCatalog (kubectl edit oc NAME):

  spec:
    blocks:
    - {package: echo-operator, version: 1.2.0, reason: it loses data, expires: "2026-12-31"}

To block a version permanently, see "bellwether catalog block".`,
		Example: "  bellwether catalog get main\n  bellwether catalog get main -o yaml",
		Args:    command.OneArg("the catalog's name"), ValidArgsFunction: a.CompleteFirst(completeCatalogNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			catalog, err := h.Catalog(c.Context(), args[0])
			if err != nil {
				return err
			}
			explanation := explain.Catalog(explain.CatalogInput{Now: a.Now(), Catalog: catalog, Program: a.Self})
			return a.PrintExplained(&out, catalog, explanation, func(s term.Style) string {
				return RenderHubCatalog(catalog, a.Now(), s)
			})
		},
	}
	out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML, command.OutputName)
	return c
}

// completeCatalogNames returns the names of the hub's catalogs with their sources, for completion.
func completeCatalogNames(ctx context.Context, h *hub.Client, completion command.Completion) []string {
	listNamed := func(list *v1alpha1.OperatorCatalogList) []command.NamedObject {
		var out []command.NamedObject
		for _, c := range list.Items {
			out = append(out, command.NamedObject{Key: client.ObjectKeyFromObject(&c),
				Text: c.Spec.Source.Image + c.Spec.Source.Directory})
		}
		return out
	}
	return command.QualifyNames(h, completion, false,
		command.ListNamed(ctx, h, &v1alpha1.OperatorCatalogList{}, listNamed))
}
