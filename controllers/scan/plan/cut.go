// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"unicode/utf8"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// cutter cuts what was found to the API's limits.
type cutter struct {
	// left is the room, in bytes.
	left int
	// cut counts texts and entries of lists that were cut.
	cut int32
}

// text cuts a text to so many characters. It has one line, and no bytes that JSON cannot have.
func (c *cutter) text(text string, most int) string {
	clean := phrase.OneLine(strings.ToValidUTF8(text, "?"))
	if utf8.RuneCountInString(clean) > most {
		c.cut++
		return phrase.Truncate(clean, most)
	}
	return clean
}

// number keeps a count within the API's limits.
func number(n int32) int32 { return min(max(n, 0), 1_000_000) }

func cutList[T any](c *cutter, all []T, most int, cut func(T) T) []T {
	if len(all) > most {
		c.cut += int32(len(all) - most)
		all = all[:most]
	}
	var out []T
	for _, item := range all {
		out = append(out, cut(item))
	}
	return out
}

func (c *cutter) texts(all []string, most, each int) []string {
	return cutList(c, all, most, func(text string) string { return c.text(text, each) })
}

const (
	maxName  = 253
	maxLabel = 63
	maxText  = 256
)

func (c *cutter) operator(o v1alpha1.FoundOperator) v1alpha1.FoundOperator {
	out := v1alpha1.FoundOperator{Namespace: c.text(o.Namespace, maxLabel), Managed: o.Managed}
	if o.Subscription != nil {
		out.Subscription = c.subscription(*o.Subscription)
	}
	if o.CSV != nil {
		out.CSV = c.csv(*o.CSV)
	}
	if o.Operator != nil {
		out.Operator = &v1alpha1.OperatorReference{Namespace: c.text(o.Operator.Namespace, maxLabel),
			Name: c.text(o.Operator.Name, maxLabel)}
	}
	out.Others = cutList(c, o.Others, 4, func(v v1alpha1.FoundVersion) v1alpha1.FoundVersion {
		return v1alpha1.FoundVersion{Name: c.text(v.Name, maxName), Phase: c.text(v.Phase, 32)}
	})
	return out
}

func (c *cutter) subscription(s v1alpha1.FoundSubscription) *v1alpha1.FoundSubscription {
	return &v1alpha1.FoundSubscription{
		Name: c.text(s.Name, maxName), Package: c.text(s.Package, maxName), Channel: c.text(s.Channel, maxName),
		Source: c.text(s.Source, maxName), SourceNamespace: c.text(s.SourceNamespace, maxLabel),
		Approval: c.text(s.Approval, 32), StartingCSV: c.text(s.StartingCSV, maxName),
		Config: c.texts(s.Config, 16, maxLabel), ConfigNotSupported: c.texts(s.ConfigNotSupported, 16, maxLabel),
		Settings:     c.settings(s.Settings),
		InstalledCSV: c.text(s.InstalledCSV, maxName), CurrentCSV: c.text(s.CurrentCSV, maxName),
		InstallPlan: c.text(s.InstallPlan, maxName), NotResolved: c.text(s.NotResolved, maxText),
		Dependency: s.Dependency, GitOps: c.text(s.GitOps, maxText), Writers: c.texts(s.Writers, 8, 128),
		Finalizers: c.texts(s.Finalizers, 8, maxName), Deleting: s.Deleting,
	}
}

// maxSettings bounds the settings of a Subscription, in characters.
const maxSettings = 4096

// settings leaves out settings that have no room: a part of them would be other settings.
func (c *cutter) settings(text string) string {
	if utf8.RuneCountInString(text) > maxSettings {
		c.cut++
		return ""
	}
	return text
}

func (c *cutter) csv(v v1alpha1.FoundCSV) *v1alpha1.FoundCSV {
	return &v1alpha1.FoundCSV{
		Name: c.text(v.Name, maxName), Version: c.text(v.Version, 128), Phase: c.text(v.Phase, 32),
		Reason: c.text(v.Reason, maxLabel), Message: c.text(v.Message, maxText), Replaces: c.text(v.Replaces, maxName),
		Owned: cutList(c, v.Owned, 100, func(d v1alpha1.FoundDefinition) v1alpha1.FoundDefinition {
			return v1alpha1.FoundDefinition{Name: c.text(d.Name, maxName), Version: c.text(d.Version, maxLabel),
				Kind: c.text(d.Kind, maxLabel)}
		}),
		Missing: c.texts(v.Missing, 100, maxName), Required: c.texts(v.Required, 50, maxName),
		Deployments: cutList(c, v.Deployments, 16, func(d v1alpha1.FoundDeployment) v1alpha1.FoundDeployment {
			return v1alpha1.FoundDeployment{Name: c.text(d.Name, maxName), Replicas: number(d.Replicas),
				Ready: number(d.Ready), Bundle: number(d.Bundle)}
		}),
		EditedBy: c.texts(v.EditedBy, 8, 128), Finalizers: c.texts(v.Finalizers, 8, maxName), Deleting: v.Deleting,
	}
}

func (c *cutter) namespace(n v1alpha1.FoundNamespace) v1alpha1.FoundNamespace {
	return v1alpha1.FoundNamespace{Name: c.text(n.Name, maxLabel),
		OperatorGroups: cutList(c, n.OperatorGroups, 8, c.operatorGroup),
		InstallPlans: cutList(c, n.InstallPlans, 16, func(p v1alpha1.FoundInstallPlan) v1alpha1.FoundInstallPlan {
			return v1alpha1.FoundInstallPlan{Name: c.text(p.Name, maxName), Phase: c.text(p.Phase, 32),
				Approved: p.Approved, CSVs: c.texts(p.CSVs, 8, maxName)}
		})}
}

func (c *cutter) operatorGroup(g v1alpha1.FoundOperatorGroup) v1alpha1.FoundOperatorGroup {
	return v1alpha1.FoundOperatorGroup{Name: c.text(g.Name, maxName), Targets: c.texts(g.Targets, 16, maxLabel),
		Selector: g.Selector, ServiceAccount: c.text(g.ServiceAccount, maxName)}
}

func (c *cutter) catalogSource(s v1alpha1.FoundCatalogSource) v1alpha1.FoundCatalogSource {
	return v1alpha1.FoundCatalogSource{Namespace: c.text(s.Namespace, maxLabel), Name: c.text(s.Name, maxName),
		State: c.text(s.State, 32), Image: c.text(s.Image, 512), Managed: s.Managed}
}
