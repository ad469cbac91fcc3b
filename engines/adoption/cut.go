// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"strings"
	"unicode/utf8"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// limiter cuts a report to the limits of the API.
type limiter struct {
	// bytesLeft is how many bytes the report may still have.
	bytesLeft int
	// cutCount counts the texts and list entries that were cut.
	cutCount int32
}

// cutText returns a text as one line of at most maxLength characters, without bytes that JSON cannot have.
func (c *limiter) cutText(text string, maxLength int) string {
	clean := phrase.OneLine(strings.ToValidUTF8(text, "?"))
	if utf8.RuneCountInString(clean) > maxLength {
		c.cutCount++
		return phrase.Truncate(clean, maxLength)
	}
	return clean
}

// limitNumber limits a count to the range of the API.
func limitNumber(n int32) int32 { return min(max(n, 0), 1_000_000) }

// limitList returns at most maxCount items, each limited by limit. It counts the items that it leaves out.
func limitList[T any](c *limiter, all []T, maxCount int, limit func(T) T) []T {
	if len(all) > maxCount {
		c.cutCount += int32(len(all) - maxCount)
		all = all[:maxCount]
	}
	var out []T
	for _, item := range all {
		out = append(out, limit(item))
	}
	return out
}

// cutTexts returns at most maxCount texts of at most maxLength characters.
func (c *limiter) cutTexts(all []string, maxCount, maxLength int) []string {
	return limitList(c, all, maxCount, func(text string) string { return c.cutText(text, maxLength) })
}

const (
	maxName  = 253
	maxLabel = 63
	maxText  = 256
)

// limitOperator returns an operator within the limits.
func (c *limiter) limitOperator(o v1alpha1.FoundOperator) v1alpha1.FoundOperator {
	out := v1alpha1.FoundOperator{Namespace: c.cutText(o.Namespace, maxLabel), Managed: o.Managed}
	if o.Subscription != nil {
		out.Subscription = c.limitSubscription(*o.Subscription)
	}
	if o.CSV != nil {
		out.CSV = c.limitCSV(*o.CSV)
	}
	if o.Operator != nil {
		out.Operator = &v1alpha1.OperatorReference{Namespace: c.cutText(o.Operator.Namespace, maxLabel),
			Name: c.cutText(o.Operator.Name, maxLabel)}
	}
	out.Others = limitList(c, o.Others, 4, func(v v1alpha1.FoundVersion) v1alpha1.FoundVersion {
		return v1alpha1.FoundVersion{Name: c.cutText(v.Name, maxName), Phase: c.cutText(v.Phase, 32)}
	})
	return out
}

// limitSubscription returns a Subscription within the limits.
func (c *limiter) limitSubscription(s v1alpha1.FoundSubscription) *v1alpha1.FoundSubscription {
	return &v1alpha1.FoundSubscription{
		Name:    c.cutText(s.Name, maxName),
		Package: c.cutText(s.Package, maxName), Channel: c.cutText(s.Channel, maxName),
		Source: c.cutText(s.Source, maxName), SourceNamespace: c.cutText(s.SourceNamespace, maxLabel),
		Approval: c.cutText(s.Approval, 32), StartingCSV: c.cutText(s.StartingCSV, maxName),
		Config: c.cutTexts(s.Config, 16, maxLabel), ConfigNotSupported: c.cutTexts(s.ConfigNotSupported, 16, maxLabel),
		Settings:     c.limitSettings(s.Settings),
		InstalledCSV: c.cutText(s.InstalledCSV, maxName), CurrentCSV: c.cutText(s.CurrentCSV, maxName),
		InstallPlan: c.cutText(s.InstallPlan, maxName), NotResolved: c.cutText(s.NotResolved, maxText),
		Dependency: s.Dependency, GitOps: c.cutText(s.GitOps, maxText), Writers: c.cutTexts(s.Writers, 8, 128),
		Finalizers: c.cutTexts(s.Finalizers, 8, maxName), Deleting: s.Deleting,
	}
}

// maxSettings limits the settings of a Subscription, in characters.
const maxSettings = 4096

// limitSettings returns the settings, or "" if they are too long: a part of them would be different settings.
func (c *limiter) limitSettings(text string) string {
	if utf8.RuneCountInString(text) > maxSettings {
		c.cutCount++
		return ""
	}
	return text
}

// limitCSV returns a CSV within the limits.
func (c *limiter) limitCSV(v v1alpha1.FoundCSV) *v1alpha1.FoundCSV {
	return &v1alpha1.FoundCSV{
		Name: c.cutText(v.Name, maxName), Version: c.cutText(v.Version, 128), Phase: c.cutText(v.Phase, 32),
		Reason: c.cutText(v.Reason, maxLabel), Message: c.cutText(v.Message, maxText),
		Replaces: c.cutText(v.Replaces, maxName),
		Owned: limitList(c, v.Owned, 100, func(d v1alpha1.FoundDefinition) v1alpha1.FoundDefinition {
			return v1alpha1.FoundDefinition{Name: c.cutText(d.Name, maxName), Version: c.cutText(d.Version, maxLabel),
				Kind: c.cutText(d.Kind, maxLabel)}
		}),
		Missing: c.cutTexts(v.Missing, 100, maxName), Required: c.cutTexts(v.Required, 50, maxName),
		Deployments: limitList(c, v.Deployments, 16, func(d v1alpha1.FoundDeployment) v1alpha1.FoundDeployment {
			return v1alpha1.FoundDeployment{Name: c.cutText(d.Name, maxName), Replicas: limitNumber(d.Replicas),
				Ready: limitNumber(d.Ready), Bundle: limitNumber(d.Bundle)}
		}),
		EditedBy: c.cutTexts(v.EditedBy, 8, 128), Finalizers: c.cutTexts(v.Finalizers, 8, maxName),
		Deleting: v.Deleting,
	}
}

// limitNamespace returns a namespace within the limits.
func (c *limiter) limitNamespace(n v1alpha1.FoundNamespace) v1alpha1.FoundNamespace {
	return v1alpha1.FoundNamespace{Name: c.cutText(n.Name, maxLabel),
		OperatorGroups: limitList(c, n.OperatorGroups, 8, c.limitOperatorGroup),
		InstallPlans: limitList(c, n.InstallPlans, 16, func(p v1alpha1.FoundInstallPlan) v1alpha1.FoundInstallPlan {
			return v1alpha1.FoundInstallPlan{Name: c.cutText(p.Name, maxName), Phase: c.cutText(p.Phase, 32),
				Approved: p.Approved, CSVs: c.cutTexts(p.CSVs, 8, maxName)}
		})}
}

// limitOperatorGroup returns an OperatorGroup within the limits.
func (c *limiter) limitOperatorGroup(g v1alpha1.FoundOperatorGroup) v1alpha1.FoundOperatorGroup {
	return v1alpha1.FoundOperatorGroup{Name: c.cutText(g.Name, maxName), Targets: c.cutTexts(g.Targets, 16, maxLabel),
		Selector: g.Selector, ServiceAccount: c.cutText(g.ServiceAccount, maxName)}
}

// limitCatalogSource returns a CatalogSource within the limits.
func (c *limiter) limitCatalogSource(s v1alpha1.FoundCatalogSource) v1alpha1.FoundCatalogSource {
	return v1alpha1.FoundCatalogSource{Namespace: c.cutText(s.Namespace, maxLabel), Name: c.cutText(s.Name, maxName),
		State: c.cutText(s.State, 32), Image: c.cutText(s.Image, 512), Managed: s.Managed}
}
