// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes a new operator: an API, a controller, its tests, and the files for building a bundle. It uses
// kubebuilder's scaffolding library, and subscribes the new repository to the conventions of this program. Its inputs
// are options and, optionally, existing Go types. The same input gives the same files. The package must not run the
// files that it writes.
package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kubebuilder/v4/pkg/model/resource"
	"sigs.k8s.io/yaml"
)

// ErrOptions means that an option is invalid.
var ErrOptions = errors.New("invalid option")

// Options describe the operator. All fields except Name can be empty.
type Options struct {
	// Name is the name of the package in catalogs, of the Deployment and of the ServiceAccount. It is a DNS label.
	Name    string
	Module  string // the path of its Go module; example.com/NAME by default
	Group   string // the API group; NAME.example.com by default
	Version string // v1alpha1 by default
	Kind    string // derived from the name by default
	Plural  string // derived from the kind by default
	Cluster bool   // the kind is cluster-scoped
	Webhook bool   // adds a validating webhook
	Image   string // the repository of the image, which need not exist; Module in lower case by default
	Team    string // a user or a team (org/team) of GitHub that approves changes and supports the operator
	// Types are existing types. Their group, version, kind and scope override the fields above. If nil, new types
	// are written.
	Types *Types
	// Example is an object of the kind, in YAML. The default fits new types, or has an empty spec.
	Example string
}

// complete sets the defaults and validates the options. Errors wrap ErrOptions.
func (o Options) complete() (Options, error) {
	const longestName = 40 // the names of other objects contain the name
	if len(validation.IsDNS1035Label(o.Name)) > 0 || len(o.Name) > longestName {
		return o, fmt.Errorf("%w: name %q must have at most %d characters: small letters, digits and dashes, a "+
			"letter first, such as snack-operator", ErrOptions, o.Name, longestName)
	}
	o.Module = cmp.Or(o.Module, "example.com/"+o.Name)
	o.Image = cmp.Or(o.Image, strings.ToLower(o.Module))
	o.Team = cmp.Or(o.Team, "maintainers")
	if t := o.Types; t != nil {
		o.Group, o.Version, o.Kind, o.Cluster = t.Group, t.Version, t.Kind, t.Cluster
		o.Plural = cmp.Or(o.Plural, t.Plural)
	}
	o.Group = cmp.Or(o.Group, strings.TrimSuffix(o.Name, "-operator")+".example.com")
	o.Version = cmp.Or(o.Version, "v1alpha1")
	o.Kind = cmp.Or(o.Kind, formatTitle(strings.TrimSuffix(o.Name, "-operator"), ""))
	o.Plural = cmp.Or(o.Plural, resource.RegularPlural(o.Kind))
	return o, o.validate()
}

// formatTitle converts snack-machine to SnackMachine, or to Snack Machine, depending on the separator.
func formatTitle(name, separator string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' })
	for i, part := range parts {
		parts[i] = strings.ToUpper(part[:1]) + part[1:]
	}
	return strings.Join(parts, separator)
}

var (
	kindPattern  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)
	imagePattern = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)
	teamPattern  = regexp.MustCompile(`^[A-Za-z0-9-]+(/[A-Za-z0-9._-]+)?$`)
)

// validate checks the options. Errors wrap ErrOptions.
func (o Options) validate() error {
	switch {
	case module.CheckPath(o.Module) != nil:
		return fmt.Errorf("%w: module %q is no path of a Go module, such as example.com/%s", ErrOptions, o.Module,
			o.Name)
	case !kindPattern.MatchString(o.Kind):
		return fmt.Errorf("%w: kind %q does not begin with a capital letter, or has more than 40 letters and digits",
			ErrOptions, o.Kind)
	case len(validation.IsDNS1035Label(o.Plural)) > 0:
		return fmt.Errorf("%w: plural %q may contain only small letters, digits and dashes", ErrOptions, o.Plural)
	case len(validation.IsDNS1123Subdomain(o.Group)) > 0 || !strings.Contains(o.Group, "."):
		return fmt.Errorf("%w: API group %q is no domain name, such as apps.example.com", ErrOptions, o.Group)
	case !regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`).MatchString(o.Version):
		return fmt.Errorf("%w: API version %q is not one such as v1alpha1, v1beta1 or v1", ErrOptions, o.Version)
	case !imagePattern.MatchString(o.Image):
		return fmt.Errorf("%w: image %q is not the repository of an image, without a tag, such as "+
			"registry.example.com/%s", ErrOptions, o.Image, o.Name)
	case !teamPattern.MatchString(o.Team):
		return fmt.Errorf("%w: team %q is no user or team (org/team) of GitHub", ErrOptions, o.Team)
	}
	if err := o.newResource().Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	var example struct{ APIVersion, Kind string }
	err := yaml.Unmarshal([]byte(o.Example), &example)
	apiVersion := o.Group + "/" + o.Version
	isOther := err != nil || example.APIVersion != apiVersion || example.Kind != o.Kind
	if o.Example != "" && isOther {
		return fmt.Errorf("%w: the example is not an object of kind %s of %s", ErrOptions, o.Kind, apiVersion)
	}
	return nil
}

// newResource returns the description of the API for kubebuilder, which the file PROJECT contains.
func (o Options) newResource() resource.Resource {
	group, domain, _ := strings.Cut(o.Group, ".")
	r := resource.Resource{
		GVK:    resource.GVK{Group: group, Domain: domain, Version: o.Version, Kind: o.Kind},
		Plural: o.Plural, Path: path.Join(o.Module, "api", o.Version), Controller: true,
	}
	if o.Types != nil && o.Types.Import != "" {
		r.Path, r.External = o.Types.Import, true
		r.Module = o.Types.Module + "@" + o.Types.ModuleVersion
	} else {
		r.API = &resource.API{CRDVersion: "v1", Namespaced: !o.Cluster}
	}
	if o.Webhook {
		r.Webhooks = &resource.Webhooks{WebhookVersion: "v1", Validation: true}
	}
	return r
}
