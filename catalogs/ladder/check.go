// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"
)

// fault is a problem of a ladder, and the path of the field.
type fault struct {
	path []any
	text string
}

type faults []fault

func (f *faults) add(path []any, format string, args ...any) {
	*f = append(*f, fault{path: path, text: fmt.Sprintf(format, args...)})
}

// buildPath returns the path of a field: names of fields and indexes of lists.
func buildPath(path ...any) []any { return path }

// Check reports all problems of a ladder. The error wraps ErrInvalid.
func (l *Ladder) Check() error {
	found := l.listFaults()
	if len(found) == 0 {
		return nil
	}
	texts := make([]string, 0, len(found))
	for _, f := range found {
		texts = append(texts, f.text)
	}
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(texts, "\n"))
}

// listFaults returns all problems of a ladder.
func (l *Ladder) listFaults() faults {
	var found faults
	l.checkHeader(&found)
	l.checkChannels(&found)
	versions := map[string]string{}
	names := map[string]string{}
	for i, b := range l.Bundles {
		path := buildPath("bundles", i)
		l.checkVersion(&found, path, b.Version, b.Name, versions, names)
		l.checkSource(&found, path, b.Version, b.Image, b.Path, true)
		if l.findChannelIndex(b.Channel) < 0 {
			found.add(append(path, "channel"), "version %s is in channel %q, which is no rung of the ladder: %s",
				b.Version, b.Channel, suggestName(b.Channel, l.ListChannels()))
		}
	}
	for i, r := range l.Retired {
		path := buildPath("retired", i)
		l.checkVersion(&found, path, r.Version, r.Name, versions, names)
		l.checkSource(&found, path, r.Version, r.Image, r.Path, false)
		if r.Channel != "" && l.findChannelIndex(r.Channel) < 0 {
			found.add(append(path, "channel"), "version %s was in channel %q, which is no rung of the ladder: %s",
				r.Version, r.Channel, suggestName(r.Channel, l.ListChannels()))
		}
	}
	l.checkBlocks(&found)
	l.checkDeprecations(&found)
	return found
}

// checkHeader checks the type, package, icon and policy.
func (l *Ladder) checkHeader(found *faults) {
	if l.APIVersion != APIVersion {
		found.add(buildPath("apiVersion"), "apiVersion is %q; it must be %s", l.APIVersion, APIVersion)
	}
	if l.Kind != Kind {
		found.add(buildPath("kind"), "kind is %q; it must be %s", l.Kind, Kind)
	}
	if errs := validation.IsDNS1123Label(l.Package); len(errs) > 0 {
		found.add(buildPath("package"), "package is %q, which is no name of a package: %s", l.Package, errs[0])
	}
	if l.Icon != "" && !isLocalPath(l.Icon) {
		found.add(buildPath("icon"), "icon %q must be a path below the folder of the ladder file", l.Icon)
	}
	if u := l.Policy.Upgrades; !slices.Contains([]Upgrades{"", Stepwise, Direct}, u) {
		found.add(buildPath("policy", "upgrades"), "policy.upgrades is %q: %s", u,
			suggestName(string(u), []string{string(Stepwise), string(Direct)}))
	}
	if c := l.Policy.Content; !slices.Contains([]Content{"", Image, Inline}, c) {
		found.add(buildPath("policy", "content"), "policy.content is %q: %s", c,
			suggestName(string(c), []string{string(Image), string(Inline)}))
	}
}

// checkChannels checks the names of the channels and the default channel.
func (l *Ladder) checkChannels(found *faults) {
	for i, c := range l.Channels {
		if errs := validation.IsDNS1123Subdomain(c); len(errs) > 0 {
			found.add(buildPath("channels", i), "channel %q is no name of a channel: %s", c, errs[0])
		}
		if slices.Index(l.Channels, c) < i {
			found.add(buildPath("channels", i), "channel %q is there twice", c)
		}
	}
	if l.DefaultChannel != "" && l.findChannelIndex(l.DefaultChannel) < 0 {
		found.add(buildPath("defaultChannel"), "the default channel %q is no rung of the ladder: %s", l.DefaultChannel,
			suggestName(l.DefaultChannel, l.ListChannels()))
	}
}

// checkVersion compares a version and its bundle's name with those of earlier entries, and adds them to versions
// and names.
func (l *Ladder) checkVersion(found *faults, path []any, version, name string, versions, names map[string]string) {
	if _, err := parseVersion(version); err != nil {
		found.add(append(path, "version"), "%v", err)
		return
	}
	name = l.BundleName(name, version)
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		found.add(append(path, "name"), "bundle name %q of version %s is no name of a ClusterServiceVersion: %s", name,
			version, errs[0])
	}
	if _, ok := versions[version]; ok {
		found.add(append(path, "version"), "version %s is there twice", version)
		return
	}
	if other, ok := names[name]; ok {
		found.add(append(path, "name"), "versions %s and %s have the same bundle name %s", other, version, name)
	}
	versions[version], names[name] = name, version
}

// checkSource checks the image or the path of a version; a version must not have both. If isRequired is true, it must
// have one of them.
func (l *Ladder) checkSource(found *faults, path []any, version, image, dir string, isRequired bool) {
	switch {
	case image != "" && dir != "":
		found.add(append(path, "path"), "version %s has an image and a path: give one of them", version)
	case image != "":
		if err := CheckImage(image); err != nil {
			found.add(append(path, "image"), "version %s: %v", version, err)
		}
	case dir != "":
		if !isLocalPath(dir) {
			found.add(append(path, "path"), "version %s: path %q must be below the folder of the ladder file", version,
				dir)
		}
	case isRequired:
		found.add(path, "version %s has neither an image nor a path", version)
	}
}

// CheckImage checks the reference of a bundle image. It needs a digest, because a tag can be moved.
func CheckImage(image string) error {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return fmt.Errorf("image %q is no image reference: %w", image, err)
	}
	if _, ok := ref.(reference.Digested); !ok {
		return fmt.Errorf("image %q has no digest, so it could change: write it as %s@sha256:... (`bellwether "+
			"catalog add` finds the digest)",
			image, reference.TrimNamed(ref))
	}
	return nil
}

// isLocalPath reports whether a path, with slashes as in io/fs, stays below the folder where it starts.
func isLocalPath(p string) bool {
	cleaned := path.Clean(p)
	return p != "" && cleaned != "." && !path.IsAbs(p) && cleaned != ".." && !strings.HasPrefix(cleaned, "../") &&
		!strings.Contains(p, `\`)
}

func (l *Ladder) checkBlocks(found *faults) {
	for i, b := range l.Blocks {
		path := buildPath("blocks", i)
		if err := l.checkBlock(b); err != nil {
			found.add(append(path, "version"), "%v", err)
		}
		if slices.IndexFunc(l.Blocks, func(o Block) bool { return o.Version == b.Version }) < i {
			found.add(append(path, "version"), "version %s is blocked twice", b.Version)
		}
	}
}

// checkBlock returns an error if a block is invalid.
func (l *Ladder) checkBlock(b Block) error {
	switch _, err := l.Bundle(b.Version); {
	case err != nil:
		return fmt.Errorf("block: %w", err)
	case strings.TrimSpace(b.Reason) == "":
		return fmt.Errorf("the block of version %s has no reason: add one, it is shown to those who run the "+
			"version", b.Version)
	case b.Expires != "" && !isDate(b.Expires):
		return fmt.Errorf("the block of version %s expires on %q: write a day, as in 2026-12-31", b.Version, b.Expires)
	case b.Instead == "": // the following checks are about Instead
		return nil
	case b.Instead == b.Version:
		return fmt.Errorf("the block of version %s sends clusters to that very version", b.Version)
	}
	if _, err := l.Bundle(b.Instead); err != nil {
		return fmt.Errorf("the block of version %s sends clusters elsewhere: %w", b.Version, err)
	}
	if _, ok := l.Blocked(b.Instead); ok {
		return fmt.Errorf("the block of version %s sends clusters to %s, which is blocked too", b.Version, b.Instead)
	}
	return nil
}

func isDate(text string) bool {
	_, err := time.Parse(DateLayout, text)
	return err == nil
}

func (l *Ladder) checkDeprecations(found *faults) {
	for i, d := range l.Deprecations {
		if err := l.checkDeprecation(d); err != nil {
			found.add(buildPath("deprecations", i), "%v", err)
		}
		if slices.IndexFunc(l.Deprecations, d.hasSameSubject) < i {
			found.add(buildPath("deprecations", i), "%s is deprecated twice", d.Subject())
		}
	}
}

// checkDeprecation returns an error if a deprecation is invalid.
func (l *Ladder) checkDeprecation(d Deprecation) error {
	subjects := 0
	for _, s := range []string{d.Version, d.Channel, d.Package} {
		if s != "" {
			subjects++
		}
	}
	switch {
	case subjects != 1:
		return errors.New("a deprecation is about exactly one of version, channel and package")
	case strings.TrimSpace(d.Message) == "":
		return fmt.Errorf("the deprecation of %s has no message", d.Subject())
	case d.Package != "" && d.Package != l.Package:
		return fmt.Errorf("the deprecation is about package %q, and the ladder about %q", d.Package, l.Package)
	case d.Channel != "" && l.findChannelIndex(d.Channel) < 0:
		return fmt.Errorf("%w %q to deprecate: %s", ErrNoChannel, d.Channel, suggestName(d.Channel, l.ListChannels()))
	case d.Version != "":
		if _, err := l.Bundle(d.Version); err != nil {
			return fmt.Errorf("deprecate: %w", err)
		}
	}
	return nil
}

// Subject describes the deprecated version, channel or package for messages.
func (d Deprecation) Subject() string {
	switch {
	case d.Version != "":
		return "version " + d.Version
	case d.Channel != "":
		return "channel " + d.Channel
	default:
		return "package " + d.Package
	}
}

func (d Deprecation) hasSameSubject(o Deprecation) bool {
	return d.Version == o.Version && d.Channel == o.Channel && d.Package == o.Package
}
