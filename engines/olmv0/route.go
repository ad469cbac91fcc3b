// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/blocks"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// request is everything that an offer depends on. The catalog is pinned by its
// digest, so the same request always has the same offer.
type request struct {
	Release v1alpha1.Release
	Blocks  []v1alpha1.VersionBlock
	// Installed is the installed bundle, and Present are the CSVs in the namespace.
	Installed catalogs.Installed
	Present   []string
	// CanAdvance says that the next hop may be offered.
	CanAdvance bool
	// Hop is the change that OLM carries out now; nil where there is none.
	Hop *hop
	// Consent permits to go back to an older release; nil where that is not
	// intended.
	Consent *rollback.Consent
	// Policy is what the owner of the cluster permits; nil where that is everything.
	Policy *localpolicy.Policy
	// Stored is what objects may be stored as in the cluster, where Consent is set.
	Stored rollback.Stored
	// claimed reads what the cluster has of what a bundle claims. That is no part of the request: it is looked up when
	// a bundle is to be offered, and again after a refusal.
	claimed claimed
}

// hop is an upgrade under way.
type hop struct {
	From catalogs.Installed
	To   string
	// Before are the CSVs that were in the namespace before it.
	Before []string
}

func requestFor(install *v1alpha1.OperatorInstall, c plan.Cluster, saved []v1alpha1.OperatorBackup,
	now time.Time) request {
	admission := install.Spec.Admission
	r := request{Release: admission.Release, Blocks: install.Spec.Blocks, Present: c.CSVsBefore(""),
		CanAdvance: c.MayAdvance(now, admission.Revision)}
	csv, ok := c.Installed()
	if adopts(admission.Release) {
		csv, ok = c.InstalledOrAdoptable(admission.Release.Package)
	}
	if ok {
		r.Installed = catalogs.Installed{Name: csv.Name, Version: csv.Version}
	}
	if r.Release.AsInstalled {
		r.Release.Bundle, r.Release.Version = csv.Name, csv.Version
	}
	r.Consent = consentFor(install, r.Installed.Name, saved)
	r.CanAdvance = r.CanAdvance || r.Consent != nil && c.MayGoBack(admission.Revision)
	if from, to, ok := c.CurrentHop(now, admission.Revision); ok {
		r.Hop = &hop{From: catalogs.Installed{Name: from.Name, Version: from.Version}, To: to.Name,
			Before: c.CSVsBefore(to.Name)}
	}
	return r
}

// adopts tells whether a release permits to adopt what others installed.
func adopts(r v1alpha1.Release) bool { return r.Adopt != nil || r.AsInstalled }

// identity is equal for equal requests, and differs for others.
func (r request) identity() string {
	text, err := json.Marshal(r)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal request: %v", err))
	}
	return string(text)
}

// source is the pinned catalog's source, with the signature that it must have. Its
// error says that the owner of the cluster does not permit the release.
func (r request) source() (oci.Source, error) {
	keys, err := r.Policy.Release(r.Release)
	if err != nil {
		return oci.Source{}, err
	}
	s := oci.SourceOf(r.Release.Catalog.Source)
	for _, key := range keys {
		s.Verification.PublicKeys = append(s.Verification.PublicKeys, []byte(key))
	}
	return s, nil
}

// permit judges the content of a bundle by what the owner of the cluster permits, and
// adds to found what the bundle claims of the cluster. It asks nobody, because nobody
// else in the process decodes a bundle meanwhile. It is nil where there is nothing to
// judge.
func (r request) permit(found *[]*localpolicy.Claims) func(bundle, image string, objects [][]byte) error {
	namespace := r.Release.TargetNamespace()
	if !r.Policy.JudgesBundles(namespace) {
		return nil
	}
	return func(bundle, image string, objects [][]byte) error {
		if err := r.Policy.Bundle(bundle, image, objects, namespace, r.Release.Install.Mode); err != nil {
			return err
		}
		claims, err := r.Policy.Claims(bundle, namespace, objects)
		if claims != nil {
			*found = append(*found, claims)
		}
		return err
	}
}

// route is how an install gets to its release.
type route struct {
	path []string
	// next is the bundle to offer to OLM now; empty for none.
	next string
	// blocked says why nothing may be installed; empty where it may.
	blocked string
	// from is what the next hop starts from, and present are the CSVs besides.
	from    catalogs.Installed
	present []string
	// back says that next is older than from.
	back bool
}

// findRoute returns the upgrade path from what is installed to the release. A hop
// that is under way is kept as long as it leads to the release, blocked or not,
// because OLM cannot be stopped in the middle of it. Otherwise no hop leads to a
// blocked version.
func findRoute(pkg *catalogs.Package, r request) (route, error) {
	if hop, ok := hopUnderWay(pkg, r); ok {
		return hop, nil
	}
	found := route{from: r.Installed, present: r.Present}
	allowed, err := pkg.WithBlocked(blocks.Of(r.Blocks, r.Release.Package)...)
	if err != nil {
		found.blocked = fmt.Sprintf("The blocks on package %s leave nothing to install: %v.", r.Release.Package, err)
		return found, nil
	}
	if found.blocked = blockedTarget(allowed, r); found.blocked != "" {
		return found, nil
	}
	if r.Release.AsInstalled {
		return found, nil // it is where it is to be, in whichever channel
	}
	if isWayBack(pkg, r, r.Installed) {
		return findWayBack(r), nil
	}
	if found.path, err = allowed.PathFrom(r.Release.Channel, r.Installed, r.Release.Bundle); err != nil {
		if found.blocked = blockedOrigin(allowed, r); found.blocked != "" {
			return found, nil
		}
		return found, err
	}
	if len(found.path) > 0 && r.CanAdvance {
		found.next = found.path[0]
	}
	return found, nil
}

// hopUnderWay returns the route by the hop that OLM carries out, if that leads to
// the release.
func hopUnderWay(pkg *catalogs.Package, r request) (route, bool) {
	if r.Hop == nil {
		return route{}, false
	}
	found := route{path: []string{r.Hop.To}, next: r.Hop.To, from: r.Hop.From, present: r.Hop.Before}
	if isWayBack(pkg, r, r.Hop.From) && r.Hop.To == r.Release.Bundle {
		found.back = true
		return found, true
	}
	path, err := pkg.PathFrom(r.Release.Channel, r.Hop.From, r.Release.Bundle)
	found.path = path
	return found, err == nil && len(path) > 0 && path[0] == r.Hop.To
}

// blockedTarget says why the admitted version is blocked; empty where it is not.
func blockedTarget(allowed *catalogs.Package, r request) string {
	b, blocked := allowed.Blocked(r.Release.Bundle)
	switch {
	case !blocked:
		return ""
	case r.Installed.Name == r.Release.Bundle:
		return fmt.Sprintf("Version %s is blocked: %s. It stays installed until another version is admitted.",
			r.Release.Version, reasonOf(b))
	default:
		return fmt.Sprintf("The admitted version %s is blocked: %s. Nothing is changed until another version is "+
			"admitted or the block is removed.", r.Release.Version, reasonOf(b))
	}
}

// blockedOrigin says why the installed version is blocked, for where it has no
// upgrade path; empty where it is not blocked.
func blockedOrigin(allowed *catalogs.Package, r request) string {
	b, blocked := allowed.Blocked(r.Installed.Name)
	if !blocked {
		return ""
	}
	return fmt.Sprintf("The installed version %s is blocked: %s. There is no upgrade path from it to %s. Publish a "+
		"newer version, or go back by hand.",
		cmp.Or(r.Installed.Version, r.Installed.Name), reasonOf(b), r.Release.Version)
}

func reasonOf(b catalogs.Block) string {
	reason := strings.TrimSuffix(b.Reason, ".")
	if b.Instead != "" {
		reason += " (use " + b.Instead + " instead)"
	}
	return reason
}

func blocksByPackage(list []v1alpha1.VersionBlock) map[string][]catalogs.Block {
	out := map[string][]catalogs.Block{}
	for _, b := range list {
		if _, done := out[b.Package]; !done {
			out[b.Package] = blocks.Of(list, b.Package)
		}
	}
	return out
}
