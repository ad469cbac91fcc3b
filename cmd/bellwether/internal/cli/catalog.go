// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

func (a *app) catalogCommand() *cobra.Command {
	return parent("catalog", "Publish and look at catalogs", []string{"catalogs"}, a.catalogListCommand())
}

func (a *app) catalogListCommand() *cobra.Command {
	return listCommand(a, listing[*v1alpha1.OperatorCatalogList]{
		what: "catalogs", short: "List the catalogs that the hub reads",
		empty: func() *v1alpha1.OperatorCatalogList { return &v1alpha1.OperatorCatalogList{} },
		table: func(l *v1alpha1.OperatorCatalogList, o view.Listing) *view.Table {
			return view.Catalogs(l.Items, o)
		},
	})
}
