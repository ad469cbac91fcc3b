// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile"
	"github.com/bellwether-dev/bellwether/catalogs/view"
)

// ErrPair means that two bundles are not an older and a newer version of one operator.
var ErrPair = errors.New("no upgrade")

// Release is a bundle, and its image if it has one.
type Release struct {
	Bundle *bundles.Bundle
	Image  string
}

// Catalog is the source of the bundles for OLM. Either Address or Image is set.
type Catalog struct {
	// Address is the host and port of a catalog that serves the view of NewCatalogView. The cluster must reach the
	// address.
	Address string
	// Image is a published catalog, which OLM runs in a pod. It must offer the bundles
	// and the upgrade between them.
	Image string
	// Channel is the channel to subscribe to.
	Channel string
}

// Channel is the name of the channel in the view of NewCatalogView.
const Channel = "try"

// NewCatalogView returns a catalog of one channel with the bundles of a trial. Bundles that fit into an InstallPlan
// need no image, and no pod that unpacks the image.
func NewCatalogView(b Release, from *Release) (view.View, error) {
	out := &catalogs.Package{Name: b.Bundle.Package, DefaultChannel: Channel, Bundles: map[string]*catalogs.Bundle{}}
	c := &catalogs.Channel{Name: Channel}
	out.Channels = map[string]*catalogs.Channel{Channel: c}
	entry := catalogs.Entry{Name: b.Bundle.Name}
	if from != nil {
		if err := checkPair(b.Bundle, from.Bundle); err != nil {
			return view.View{}, err
		}
		entry.Replaces = from.Bundle.Name
		if err := addRelease(out, *from, catalogs.Entry{Name: from.Bundle.Name}); err != nil {
			return view.View{}, err
		}
	}
	if err := addRelease(out, b, entry); err != nil {
		return view.View{}, err
	}
	return view.All([]*catalogs.Package{out})
}

// checkPair returns an error if a bundle cannot be an upgrade of another bundle.
func checkPair(b, from *bundles.Bundle) error {
	switch {
	case b.Package != from.Package:
		return fmt.Errorf("%w: %s is of package %q, and %s of package %q", ErrPair, from.Name, from.Package, b.Name,
			b.Package)
	case b.Name == from.Name:
		return fmt.Errorf("%w: both bundles are %s", ErrPair, b.Name)
	case b.Version.LE(from.Version):
		return fmt.Errorf("%w: %s is version %s, which is not newer than %s", ErrPair, b.Name, b.Version, from.Version)
	}
	return nil
}

// addRelease adds a bundle and its channel entry to a catalog, in the form in which the agent would serve the bundle.
func addRelease(p *catalogs.Package, r Release, e catalogs.Entry) error {
	b, err := compile.Bundle(r.Bundle, r.Image)
	if err != nil {
		return err
	}
	single := &catalogs.Package{Name: p.Name, DefaultChannel: Channel,
		Bundles:  map[string]*catalogs.Bundle{b.Name: b},
		Channels: map[string]*catalogs.Channel{Channel: {Name: Channel, Entries: []catalogs.Entry{{Name: b.Name}}}}}
	served, err := view.Build(view.Input{Package: single, Next: b.Name})
	if err != nil {
		return err
	}
	p.Bundles[b.Name] = served.Packages[0].Bundles[b.Name]
	p.Channels[Channel].Entries = append(p.Channels[Channel].Entries, e)
	return nil
}

// declaresUpgrade reports whether a bundle names another bundle (from) as its predecessor, in replaces, skips or
// olm.skipRange.
func declaresUpgrade(b, from *bundles.Bundle) bool {
	if b.CSV.Spec.Replaces == from.Name || slices.Contains(b.CSV.Spec.Skips, from.Name) {
		return true
	}
	in, err := semver.ParseRange(b.CSV.Annotations["olm.skipRange"])
	return err == nil && in(from.Version)
}

// hasDependencies reports whether a bundle has dependencies.
func hasDependencies(r Release) (bool, error) {
	b, err := compile.Bundle(r.Bundle, r.Image)
	if err != nil {
		return false, err
	}
	needs, err := b.Requirements()
	return len(needs) > 0, err
}

// preferredModes are the install modes, the most preferred first: an operator that watches fewer namespaces can
// change less.
var preferredModes = []operatorsv1alpha1.InstallModeType{
	operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
	operatorsv1alpha1.InstallModeTypeAllNamespaces, operatorsv1alpha1.InstallModeTypeMultiNamespace,
}

// ErrMode means that a bundle does not support an install mode.
var ErrMode = errors.New("unsupported install mode")

// chooseMode returns the wanted install mode if all bundles support it. If wanted is empty, it returns the first mode
// that all bundles support.
func chooseMode(wanted operatorsv1alpha1.InstallModeType, all ...*bundles.Bundle) (operatorsv1alpha1.InstallModeType,
	error) {
	var shared []operatorsv1alpha1.InstallModeType
	for _, m := range preferredModes {
		if !slices.ContainsFunc(all, func(b *bundles.Bundle) bool { return !hasMode(b, m) }) {
			shared = append(shared, m)
		}
	}
	switch {
	case wanted == "" && len(shared) > 0:
		return shared[0], nil
	case wanted != "" && slices.Contains(shared, wanted):
		return wanted, nil
	case wanted == "":
		return "", fmt.Errorf("%w: there is none that the bundles support", ErrMode)
	}
	return "", fmt.Errorf("%w %q: supported: %v", ErrMode, wanted, shared)
}

// hasMode reports whether a bundle supports an install mode.
func hasMode(b *bundles.Bundle, m operatorsv1alpha1.InstallModeType) bool {
	return slices.ContainsFunc(b.CSV.Spec.InstallModes,
		func(s operatorsv1alpha1.InstallMode) bool { return s.Type == m && s.Supported })
}

// readExamples returns the custom resources in a bundle's annotation alm-examples; nil if there are none. An invalid
// annotation is a failure of the bundle.
func readExamples(b *bundles.Bundle) ([]*unstructured.Unstructured, error) {
	text := b.CSV.Annotations["alm-examples"]
	if text == "" {
		return nil, nil
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, failf("the annotation alm-examples of %s is not a JSON list of objects: %v", b.Name, err)
	}
	var out []*unstructured.Unstructured
	for i, content := range list {
		o := &unstructured.Unstructured{Object: content}
		if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "" {
			return nil, failf("example %d of %s has no apiVersion, no kind or no name", i+1, b.Name)
		}
		out = append(out, o)
	}
	return out, nil
}
