// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// ErrInput says that no bundle can be made of what was given; the error lists all that is wrong.
var ErrInput = errors.New("no bundle can be made of this")

// InputError lists what is wrong with the input. It is an ErrInput.
type InputError struct {
	// Problems are sentences that name the object or the option, and what to do.
	Problems []string
}

func (e *InputError) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("%v: %s", ErrInput, e.Problems[0])
	}
	return fmt.Sprintf("%v: %d problems:\n  - %s", ErrInput, len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

// Is makes errors.Is(err, ErrInput) hold.
func (e *InputError) Is(target error) bool { return target == ErrInput }

// Source is a stream of YAML or JSON documents. Name is what errors call it, such as "stdin" or a file's name.
type Source struct {
	Name string
	Text []byte
	// Where is the place that errors name for all of its documents. Set it where another program made the text, so that
	// its lines are not those of a file that the user has. Empty means the name and the line.
	Where string
}

// Options say what manifests cannot. Package and Version are required, unless a ClusterServiceVersion among the
// manifests has the version.
type Options struct {
	// Package is the operator's name in catalogs.
	Package string
	// Version is a plain X.Y.Z. Pre-releases and build metadata are refused: ranges do not see the former, and OLM v1
	// orders by the latter.
	Version string
	// Channels are those that the bundle proposes itself for; none means "stable". The compiled catalog decides.
	Channels []string
	// DefaultChannel is one of Channels; empty means the first.
	DefaultChannel string
	// About is what people read of the operator. Where it is set it wins over a ClusterServiceVersion among the
	// manifests.
	About About
	// LeaveOut are objects that may be lost: KIND or KIND/NAME, in any case.
	LeaveOut []string
	// ServiceAccounts are accounts that no Deployment uses and that get their permissions through OLM all the same.
	ServiceAccounts []string
	// Annotations are added to metadata/annotations.yaml.
	Annotations map[string]string
	// Described are descriptions of kinds, by Kind and Version, such as package gomarkers reads. What they say wins
	// over a ClusterServiceVersion among the manifests.
	Described []operatorsv1alpha1.CRDDescription
	// Metadata are further files of metadata/, by their name there: properties.yaml and dependencies.yaml.
	Metadata map[string][]byte
}

// About describes the operator to people and says where it can be installed. The zero value says nothing.
type About struct {
	DisplayName, Description string
	Provider, ProviderURL    string
	Maturity, MinKubeVersion string
	Capabilities             string
	Keywords                 []string
	Maintainers              []operatorsv1alpha1.Maintainer
	Links                    []operatorsv1alpha1.AppLink
	Icon                     *operatorsv1alpha1.Icon
	InstallModes             []operatorsv1alpha1.InstallModeType
	Replaces                 string
}

// or fills what is not set.
func (a About) or(b About) About {
	a.DisplayName, a.Description = cmp.Or(a.DisplayName, b.DisplayName), cmp.Or(a.Description, b.Description)
	a.Provider, a.ProviderURL = cmp.Or(a.Provider, b.Provider), cmp.Or(a.ProviderURL, b.ProviderURL)
	a.Maturity, a.MinKubeVersion = cmp.Or(a.Maturity, b.Maturity), cmp.Or(a.MinKubeVersion, b.MinKubeVersion)
	a.Capabilities, a.Replaces, a.Icon = cmp.Or(a.Capabilities, b.Capabilities), cmp.Or(a.Replaces, b.Replaces),
		cmp.Or(a.Icon, b.Icon)
	a.Keywords, a.Maintainers = orSlice(a.Keywords, b.Keywords), orSlice(a.Maintainers, b.Maintainers)
	a.Links, a.InstallModes = orSlice(a.Links, b.Links), orSlice(a.InstallModes, b.InstallModes)
	return a
}

func orSlice[T any](a, b []T) []T {
	if len(a) > 0 {
		return a
	}
	return b
}

// Or fills what o leaves open from defaults, as a chart's metadata gives them.
func (o Options) Or(defaults Options) Options {
	o.Package, o.Version = cmp.Or(o.Package, defaults.Package), cmp.Or(o.Version, defaults.Version)
	o.About = o.About.or(defaults.About)
	return o
}

// Result is a bundle, and what its author should know of it.
type Result struct {
	Name, Package, Version string
	// Files are the bundle's, by their path in it.
	Files Files
	// Account says what became of every object of the input; nil for a bundle that was one already.
	Account []Placement
	// Warnings are sentences: what was left out or changed, and what the validators have to say.
	Warnings []string
}

// Assemble makes a bundle of manifests. Errors are ErrInput.
func Assemble(sources []Source, o Options) (*Result, error) {
	a := &assembly{options: o, placements: map[*unstructured.Unstructured]string{},
		answeredBy: map[string]string{}}
	a.checkOptions()
	objects := a.parse(sources)
	a.sort(objects)
	if len(a.problems) == 0 {
		a.run()
	}
	var account []Placement
	if len(a.problems) == 0 {
		account = a.account(objects)
	}
	if len(a.problems) > 0 {
		return nil, &InputError{a.problems}
	}
	files, err := a.files()
	if err != nil {
		return nil, err
	}
	r := &Result{Name: a.csv.Name, Package: o.Package, Version: a.csv.Spec.Version.String(), Files: files,
		Account: account, Warnings: a.warnings}
	b, err := r.Files.Bundle()
	if err != nil {
		return r, input("%v", err)
	}
	r.Warnings = append(r.Warnings, undefinedKinds(b)...)
	r.Warnings = append(r.Warnings, a.missingObjects(b)...)
	return r, r.checkBundle(b)
}

// undefinedKinds warns of kinds that the operator needs and that the bundle does not define.
func undefinedKinds(b *bundles.Bundle) []string {
	var needed []string
	for _, u := range b.UndefinedResources() {
		needed = append(needed, fmt.Sprintf("%s (%s)", u.Name, u.By))
	}
	if len(needed) == 0 {
		return nil
	}
	return []string{"no CustomResourceDefinition among the manifests defines " + strings.Join(needed, ", ") +
		". Add what is missing, or list it as required in a ClusterServiceVersion (--csv), unless the operator works " +
		"without it"}
}

// missingObjects warns of ConfigMaps and Secrets without which Pods do not start.
func (a *assembly) missingObjects(b *bundles.Bundle) []string {
	var out []string
	for _, m := range b.MissingObjects() {
		if a.mayLoseNamed(m.Kind, m.Name) {
			continue
		}
		out = append(out, fmt.Sprintf("Deployment %s needs %s %s in %s, which the bundle does not have: its Pods do "+
			"not start until somebody makes it. Add it, set optional: true, or use --leave-out %s/%s if it is made "+
			"before the operator is installed", m.Deployment, m.Kind, m.Name, bundles.FieldPath(m.Path...), m.Kind,
			m.Name))
	}
	return out
}

// assembly is a bundle in the making.
type assembly struct {
	options            Options
	problems, warnings []string

	bases       []typed[operatorsv1alpha1.ClusterServiceVersion]
	objects     collected
	csv         *operatorsv1alpha1.ClusterServiceVersion
	permissions permissions
	// placements are what became of the objects of the input.
	placements map[*unstructured.Unstructured]string
	// namespace is that of the Deployments, which objects of the bundle lose. It is implied where the Deployments name
	// none and other objects do.
	namespace        string
	impliedNamespace bool
	// answeredBy are the Deployments behind the Services of webhooks, by the name of the Service.
	answeredBy map[string]string
}

func (a *assembly) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

func (a *assembly) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// run takes the steps in the order in which they need each other.
func (a *assembly) run() {
	if a.startCSV(); a.csv == nil {
		return
	}
	a.findNamespace()
	a.permit()
	a.deploy()
	a.own()
	a.requireExamples()
	a.exemplify()
	a.hookUp()
	a.describe()
	a.relateImages()
}

var packageName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

func (a *assembly) checkOptions() {
	o := &a.options
	switch {
	case o.Package == "":
		a.problem("the package is not known: give --package NAME")
	case !packageName.MatchString(o.Package):
		a.problem("package %q is not written in small letters, digits, dots and dashes, at most 63 of them", o.Package)
	}
	if len(o.Channels) == 0 {
		o.Channels = []string{"stable"}
	}
	for _, c := range o.Channels {
		if !packageName.MatchString(c) {
			a.problem("channel %q is not written in small letters, digits, dots and dashes", c)
		}
	}
	o.DefaultChannel = cmp.Or(o.DefaultChannel, o.Channels[0])
	if !slices.Contains(o.Channels, o.DefaultChannel) {
		a.problem("the default channel %q is none of the channels %s", o.DefaultChannel, strings.Join(o.Channels, ", "))
	}
	for name := range o.Metadata {
		if name != "properties.yaml" && name != "dependencies.yaml" {
			a.problem("metadata/%s is not read by anything: only properties.yaml and dependencies.yaml are", name)
		}
	}
	for key := range o.Annotations {
		if strings.HasPrefix(key, "operators.operatorframework.io.bundle.") {
			a.problem("annotation %s follows from the other options and cannot be set", key)
		}
	}
}

// PlainVersion parses X.Y.Z, and says what is wrong with anything else.
func PlainVersion(text string) (semver.Version, error) {
	v, err := semver.Parse(text)
	switch {
	case err != nil:
		// The library's own words, such as "No Major.Minor.Patch elements found", say no more.
		return v, fmt.Errorf("version %q is not X.Y.Z, three numbers such as 1.4.0", text)
	case len(v.Pre) > 0:
		return v, fmt.Errorf("version %q is a pre-release: version ranges do not see it; use X.Y.Z and a candidate "+
			"channel", text)
	case len(v.Build) > 0:
		return v, fmt.Errorf("version %q has build metadata, by which OLM v1 orders: put it into an annotation", text)
	}
	return v, nil
}

// annotations of metadata/annotations.yaml.
func (a *assembly) annotations() map[string]string {
	out := map[string]string{
		registryv1.AnnotationMediaType:      registryv1.MediaType,
		registryv1.AnnotationManifests:      bundles.ManifestsDir + "/",
		registryv1.AnnotationMetadata:       bundles.MetadataDir + "/",
		registryv1.AnnotationPackage:        a.options.Package,
		registryv1.AnnotationChannels:       strings.Join(a.options.Channels, ","),
		registryv1.AnnotationDefaultChannel: a.options.DefaultChannel,
	}
	for key, value := range a.options.Annotations {
		out[key] = value
	}
	if len(a.objects.scorecard) > 0 {
		out["operators.operatorframework.io.test.mediatype.v1"] = "scorecard+v1"
		out["operators.operatorframework.io.test.config.v1"] = "tests/scorecard/"
	}
	return out
}
