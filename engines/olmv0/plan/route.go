// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

// Request is all data that an offer depends on. The catalog is pinned by its digest, so equal requests always have
// equal offers.
type Request struct {
	Release v1alpha1.Release
	Blocks  []v1alpha1.VersionBlock
	// Installed is the installed bundle, and Present are the names of all CSVs in the namespace.
	Installed catalogs.Installed
	Present   []string
	// CanAdvance is set if the next hop may be offered.
	CanAdvance bool
	// Hop is the change that OLM carries out now; nil if there is none.
	Hop *Hop
	// Consent permits a rollback to an older release; nil if the request is not for a rollback.
	Consent *rollback.Consent
	// Policy is what the owner of the cluster permits; nil if everything is permitted.
	Policy *localpolicy.Policy
	// Stored are the versions that objects of the cluster may be stored in. It is set only if Consent is set.
	Stored rollback.Stored
}

// Hop is an upgrade or a rollback that OLM carries out.
type Hop struct {
	From catalogs.Installed
	To   string
	// Present are the names of the CSVs that were in the namespace before the hop.
	Present []string
}

// RequestFor returns the request to the catalog for an install. The caller must add Policy and Stored.
func RequestFor(install *v1alpha1.OperatorInstall, c Cluster, saved []v1alpha1.OperatorBackup, now time.Time) Request {
	admission := install.Spec.Admission
	r := Request{Release: admission.Release, Blocks: install.Spec.Blocks, Present: c.CSVsBefore(""),
		CanAdvance: c.MayAdvance(now, admission.Revision)}
	csv, ok := c.Installed()
	if isAdoption(admission.Release) { // the operator that is to be adopted may have no Subscription of Bellwether
		csv, ok = c.InstalledOrAdoptable(admission.Release.Package)
	}
	if ok {
		r.Installed = catalogs.Installed{Name: csv.Name, Version: csv.Version}
	}
	if r.Release.AsInstalled {
		r.Release.Bundle, r.Release.Version = csv.Name, csv.Version
	}
	r.Consent = newConsent(install, r.Installed.Name, saved)
	// A rollback may replace an unfinished upgrade that an upgrade would wait for.
	r.CanAdvance = r.CanAdvance || r.Consent != nil && c.MayGoBack(admission.Revision)
	if from, to, ok := c.CurrentHop(now, admission.Revision); ok {
		r.Hop = &Hop{From: catalogs.Installed{Name: from.Name, Version: from.Version}, To: to.Name,
			Present: c.CSVsBefore(to.Name)}
	}
	return r
}

// Identity returns a text that is equal for equal requests and differs for different requests.
func (r Request) Identity() string {
	text, err := json.Marshal(r)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal request: %v", err))
	}
	return string(text)
}

// NewBundleCheck returns a function that checks the content of a bundle against the policy of the cluster's owner, and
// appends the claims of the bundle to found. The function does not read from the cluster, because the
// process decodes only one bundle at a time and other bundles would wait. NewBundleCheck returns nil if the policy
// judges no bundles.
func (r Request) NewBundleCheck(found *[]*localpolicy.Claims) func(bundle, image string, objects [][]byte) error {
	namespace := r.Release.TargetNamespace()
	if !r.Policy.JudgesBundles(namespace) {
		return nil
	}
	return func(bundle, image string, objects [][]byte) error {
		if err := r.Policy.JudgeBundle(bundle, image, objects, namespace, r.Release.Install.Mode); err != nil {
			return err
		}
		claims, err := r.Policy.ReadClaims(bundle, namespace, objects)
		if claims != nil {
			*found = append(*found, claims)
		}
		return err
	}
}

// Route is how an install gets to its release.
type Route struct {
	Path []string
	// Next is the bundle to offer to OLM now; empty for none.
	Next string
	// Blocked is why no bundle may be installed; empty if a bundle may be installed.
	Blocked string
	// From is the bundle that the next hop starts from. Present are the names of the CSVs that were in the namespace
	// before the hop.
	From    catalogs.Installed
	Present []string
	// IsRollback is set if Next is older than From.
	IsRollback bool
	// Serves is set if a view must be served, even if it has only the installed bundle.
	Serves bool
}

// FindRoute returns the route from the installed bundle to the release. It keeps a current hop that leads to the
// release even if the version is blocked, because OLM cannot be stopped during a hop. Otherwise no hop leads to a
// blocked version, and Route.Blocked says why. The error means that there is no path, and that no block is the cause.
func FindRoute(pkg *catalogs.Package, r Request) (Route, error) {
	if hop, ok := findCurrentHop(pkg, r); ok {
		return hop, nil
	}
	found := Route{From: r.Installed, Present: r.Present}
	allowed, err := pkg.WithBlocked(catalogs.BlocksOf(r.Blocks, r.Release.Package)...)
	if err != nil {
		found.Blocked = fmt.Sprintf("The blocks on package %s leave nothing to install: %v.", r.Release.Package, err)
		return found, nil
	}
	if found.Blocked = explainBlockedTarget(allowed, r); found.Blocked != "" {
		return found, nil
	}
	if r.Release.AsInstalled {
		return found, nil // the installed version stays, whatever its channel is
	}
	if isRollbackRequest(pkg, r, r.Installed) {
		return newRollbackRoute(r), nil
	}
	if found.Path, err = allowed.PathFrom(r.Release.Channel, r.Installed, r.Release.Bundle); err != nil {
		if found.Blocked = explainBlockedOrigin(allowed, r); found.Blocked != "" {
			return found, nil
		}
		return found, err
	}
	if len(found.Path) > 0 && r.CanAdvance {
		found.Next = found.Path[0]
	}
	return found, nil
}

// findCurrentHop returns the route of the hop that OLM carries out; false if there is no hop, or if the hop does not
// lead to the release. A rollback must lead to the release directly, because it has no further hops.
func findCurrentHop(pkg *catalogs.Package, r Request) (Route, bool) {
	if r.Hop == nil {
		return Route{}, false
	}
	found := Route{Path: []string{r.Hop.To}, Next: r.Hop.To, From: r.Hop.From, Present: r.Hop.Present}
	if isRollbackRequest(pkg, r, r.Hop.From) && r.Hop.To == r.Release.Bundle {
		found.IsRollback = true
		return found, true
	}
	path, err := pkg.PathFrom(r.Release.Channel, r.Hop.From, r.Release.Bundle)
	found.Path = path
	return found, err == nil && len(path) > 0 && path[0] == r.Hop.To
}

// explainBlockedTarget returns why the admitted version is blocked; empty if it is not blocked.
func explainBlockedTarget(allowed *catalogs.Package, r Request) string {
	b, blocked := allowed.Blocked(r.Release.Bundle)
	switch {
	case !blocked:
		return ""
	case r.Installed.Name == r.Release.Bundle:
		return fmt.Sprintf("Version %s is blocked: %s. It stays installed until another version is admitted.",
			r.Release.Version, formatReason(b))
	default:
		return fmt.Sprintf("The admitted version %s is blocked: %s. Nothing is changed until another version is "+
			"admitted or the block is removed.", r.Release.Version, formatReason(b))
	}
}

// explainBlockedOrigin returns why the installed version, which has no upgrade path, is blocked; empty if it is
// not blocked.
func explainBlockedOrigin(allowed *catalogs.Package, r Request) string {
	b, blocked := allowed.Blocked(r.Installed.Name)
	if !blocked {
		return ""
	}
	return fmt.Sprintf("The installed version %s is blocked: %s. There is no upgrade path from it to %s. Publish a "+
		"newer version, or go back by hand.",
		cmp.Or(r.Installed.Version, r.Installed.Name), formatReason(b), r.Release.Version)
}

// formatReason returns the reason of a block with its replacement version.
func formatReason(b catalogs.Block) string {
	reason := strings.TrimSuffix(b.Reason, ".")
	if b.Instead != "" {
		reason += " (use " + b.Instead + " instead)"
	}
	return reason
}

// BlocksByPackage groups blocks by their package.
func BlocksByPackage(list []v1alpha1.VersionBlock) map[string][]catalogs.Block {
	out := map[string][]catalogs.Block{}
	for _, b := range list {
		if _, done := out[b.Package]; !done {
			out[b.Package] = catalogs.BlocksOf(list, b.Package)
		}
	}
	return out
}
