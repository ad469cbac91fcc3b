// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

func (a *app) catalogGetCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use: "get NAME", Short: "Show a catalog as the hub reads it: who runs which version, what is blocked, how to " +
			"get back",
		Long: `Show an OperatorCatalog of the hub: the digest in use, the versions that clusters run, those that are blocked with a
proposal for whoever runs them, and the way back from each version.

A version is blocked at once, on every cluster, by spec.blocks of the OperatorCatalog (kubectl edit oc NAME):

  spec:
    blocks:
    - {package: echo-operator, version: 1.2.0, reason: it loses data, expires: "2026-12-31"}

For good it belongs in the catalog itself; see "bellwether catalog block".`,
		Example: "  bellwether catalog get main\n  bellwether catalog get main -o yaml",
		Args:    oneArg("the catalog's name"), ValidArgsFunction: a.completeFirst(catalogNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			h, err := a.hub()
			if err != nil {
				return err
			}
			catalog, err := h.catalog(c.Context(), args[0])
			if err != nil {
				return err
			}
			if !out.table() {
				return out.object(a.streams.Out, catalog)
			}
			a.say("%s", view.HubCatalog(catalog, a.now(), a.style()))
			return nil
		},
	}
	out.add(c, outputJSON, outputYAML, outputName)
	return c
}

func catalogNames(ctx context.Context, h *hub) []string {
	list := &v1alpha1.OperatorCatalogList{}
	_ = h.List(ctx, list, client.InNamespace(h.namespace))
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name+"\t"+c.Spec.Source.Image+c.Spec.Source.Directory)
	}
	return out
}

func (h *hub) catalog(ctx context.Context, name string) (*v1alpha1.OperatorCatalog, error) {
	c := &v1alpha1.OperatorCatalog{}
	err := h.Get(ctx, h.key(name), c)
	if apierrors.IsNotFound(err) {
		return nil, hintf(h.offerCatalogs(ctx), "there is no catalog %q in namespace %q", name, h.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("get catalog: %w", err)
	}
	return c, nil
}

// offerCatalogs says which catalogs exist instead; it is only a hint, so an
// error of its own is left out.
func (h *hub) offerCatalogs(ctx context.Context) string {
	list := &v1alpha1.OperatorCatalogList{}
	_ = h.List(ctx, list)
	var names []string
	for _, c := range list.Items {
		if c.Namespace == h.namespace {
			names = append(names, c.Name)
		} else {
			names = append(names, c.Name+" (-n "+c.Namespace+")")
		}
	}
	return offer(names, "there are none: create an OperatorCatalog")
}
