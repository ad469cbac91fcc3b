// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/package-url/packageurl-go"
)

// ErrNotCompared means that a package cannot be compared with the database. Such a package is neither affected
// nor clean.
var ErrNotCompared = errors.New("not compared")

// Target is a package in the terms of OSV.
type Target struct {
	// Ecosystem is one of https://ossf.github.io/osv-schema/#defined-ecosystems, with its release if it has releases:
	// Go, npm, Debian:12, Red Hat:enterprise_linux:9.
	Ecosystem string
	Name      string
	Version   string
}

// Ecosystems of OSV whose versions can be ordered. In other ecosystems only explicitly listed versions are compared.
const (
	ecosystemGo       = "Go"
	ecosystemNPM      = "npm"
	ecosystemPyPI     = "PyPI"
	ecosystemMaven    = "Maven"
	ecosystemCrates   = "crates.io"
	ecosystemRubyGems = "RubyGems"
	ecosystemNuGet    = "NuGet"
	ecosystemPackages = "Packagist"
	ecosystemHex      = "Hex"
	ecosystemPub      = "Pub"
	ecosystemDebian   = "Debian"
	ecosystemUbuntu   = "Ubuntu"
	ecosystemAlpine   = "Alpine"
	ecosystemWolfi    = "Wolfi"
	ecosystemChain    = "Chainguard"
	ecosystemRedHat   = "Red Hat"
	ecosystemRocky    = "Rocky Linux"
	ecosystemAlma     = "AlmaLinux"
)

// trimRelease returns an ecosystem without its release.
func trimRelease(ecosystem string) string {
	name, _, _ := strings.Cut(ecosystem, ":")
	return name
}

// isCoveredBy reports whether a record about an ecosystem applies to the target: the ecosystem is the target's
// ecosystem, a subdivision of its release, or all releases.
func (t Target) isCoveredBy(ecosystem string) bool {
	return ecosystem == t.Ecosystem || ecosystem == trimRelease(t.Ecosystem) ||
		strings.HasPrefix(ecosystem, t.Ecosystem+":")
}

// ParseTarget converts a package URL. Errors wrap ErrNotCompared and say why the package cannot be compared.
func ParseTarget(purl string) (Target, error) {
	if purl == "" {
		return Target{}, fmt.Errorf("%w: the SBOM has no package URL", ErrNotCompared)
	}
	p, err := packageurl.FromString(purl)
	if err != nil {
		return Target{}, fmt.Errorf("%w: invalid package URL: %w", ErrNotCompared, err)
	}
	t, err := translate(p)
	if err != nil {
		return Target{}, err
	}
	// Some tools write a placeholder for an unknown version.
	if t.Version == "" || t.Version == "UNKNOWN" || t.Version == "(devel)" {
		return Target{}, fmt.Errorf("%w: the SBOM has no version", ErrNotCompared)
	}
	return t, nil
}

// namespacedEcosystems are the ecosystems whose package names consist of namespace, separator and name.
var namespacedEcosystems = map[string]struct{ ecosystem, separator string }{
	packageurl.TypeGolang:   {ecosystemGo, "/"},
	packageurl.TypeNPM:      {ecosystemNPM, "/"},
	packageurl.TypePyPi:     {ecosystemPyPI, ""},
	packageurl.TypeMaven:    {ecosystemMaven, ":"},
	packageurl.TypeCargo:    {ecosystemCrates, ""},
	packageurl.TypeGem:      {ecosystemRubyGems, ""},
	packageurl.TypeNuget:    {ecosystemNuGet, ""},
	packageurl.TypeComposer: {ecosystemPackages, "/"},
	packageurl.TypeHex:      {ecosystemHex, "/"},
	packageurl.TypePub:      {ecosystemPub, ""},
}

// translate converts a package URL by the rules of its type.
func translate(p packageurl.PackageURL) (Target, error) {
	switch p.Type {
	case packageurl.TypeDebian:
		return translateDebian(p)
	case packageurl.TypeApk:
		return translateAlpine(p)
	case packageurl.TypeRPM:
		return translateRPM(p)
	}
	naming, ok := namespacedEcosystems[p.Type]
	if !ok {
		return Target{}, fmt.Errorf("%w: packages of type %q are not known", ErrNotCompared, p.Type)
	}
	t := Target{Ecosystem: naming.ecosystem, Name: p.Name, Version: p.Version}
	if p.Namespace != "" {
		t.Name = p.Namespace + naming.separator + p.Name
	}
	switch p.Type { // OSV writes names and versions without prefix, and names of PyPI in one spelling
	case packageurl.TypeGolang:
		t.Version = strings.TrimPrefix(t.Version, "v")
		if t.Name == "stdlib" {
			t.Version = strings.TrimPrefix(t.Version, "go")
		}
	case packageurl.TypePyPi:
		t.Name = strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(t.Name))
	}
	return t, nil
}

// findSourcePackage returns the name and version of the source package from which a binary package was built. OSV
// lists most distributions by source packages.
func findSourcePackage(qualifiers map[string]string, name, version string) (string, string) {
	text := cmp.Or(qualifiers["upstream"], qualifiers["source"])
	if text == "" {
		return name, version
	}
	source, sourceVersion, ok := strings.Cut(text, "@")
	if !ok {
		sourceVersion = version
	}
	return source, sourceVersion
}

// translateDebian converts the URL of a package of Debian or Ubuntu to its source package in the distribution's
// release.
func translateDebian(p packageurl.PackageURL) (Target, error) {
	q := p.Qualifiers.Map()
	t := Target{}
	t.Name, t.Version = findSourcePackage(q, p.Name, p.Version)
	release := strings.TrimPrefix(q["distro"], p.Namespace+"-")
	switch p.Namespace {
	case "debian":
		release, _, _ = strings.Cut(release, ".")
		t.Ecosystem = ecosystemDebian + ":" + release
	case "ubuntu":
		t.Ecosystem = ecosystemUbuntu + ":" + release
	default:
		return Target{}, fmt.Errorf("%w: packages of distribution %q are not known", ErrNotCompared, p.Namespace)
	}
	return t, checkRelease(p, release)
}

// checkRelease returns an error unless the release is a number: code names such as bookworm are not converted.
func checkRelease(p packageurl.PackageURL, release string) error {
	if release == "" || release[0] < '0' || release[0] > '9' {
		return fmt.Errorf("%w: the package URL does not say the release of %s", ErrNotCompared, p.Namespace)
	}
	return nil
}

// translateAlpine converts the URL of a package of Alpine, Wolfi or Chainguard to its source package. Only Alpine has
// releases.
func translateAlpine(p packageurl.PackageURL) (Target, error) {
	q := p.Qualifiers.Map()
	t := Target{}
	t.Name, t.Version = findSourcePackage(q, p.Name, p.Version)
	switch p.Namespace {
	case "wolfi":
		t.Ecosystem = ecosystemWolfi
	case "chainguard":
		t.Ecosystem = ecosystemChain
	case "alpine":
		release := strings.TrimPrefix(strings.TrimPrefix(q["distro"], "alpine-"), "v")
		if err := checkRelease(p, release); err != nil {
			return Target{}, err
		}
		numbers := strings.SplitN(release, ".", 3)
		t.Ecosystem = ecosystemAlpine + ":v" + strings.Join(numbers[:min(2, len(numbers))], ".")
	default:
		return Target{}, fmt.Errorf("%w: packages of distribution %q are not known", ErrNotCompared, p.Namespace)
	}
	return t, nil
}

// translateRPM converts the URL of an RPM package. It keeps the name of the binary package, because OSV lists these
// distributions by binary packages.
func translateRPM(p packageurl.PackageURL) (Target, error) {
	q := p.Qualifiers.Map()
	t := Target{Name: p.Name, Version: p.Version}
	if epoch := q["epoch"]; epoch != "" && !strings.Contains(t.Version, ":") {
		t.Version = epoch + ":" + t.Version
	}
	release := q["distro"]
	if i := strings.LastIndex(release, "-"); i >= 0 {
		release = release[i+1:]
	}
	release, _, _ = strings.Cut(release, ".")
	switch p.Namespace {
	case "redhat", "rhel":
		t.Ecosystem = ecosystemRedHat + ":enterprise_linux:" + release
	case "rocky", "rockylinux", "rocky-linux":
		t.Ecosystem = ecosystemRocky + ":" + release
	case "almalinux", "alma":
		t.Ecosystem = ecosystemAlma + ":" + release
	default:
		return Target{}, fmt.Errorf("%w: packages of distribution %q are not known", ErrNotCompared, p.Namespace)
	}
	return t, checkRelease(p, release)
}
