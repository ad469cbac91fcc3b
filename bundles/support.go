// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/blang/semver/v4"
)

// Support is the value of PropertySupport.
type Support struct {
	// EndOfSupport is the last day on which the version is supported, such as 2027-06-30; empty if there is none.
	EndOfSupport string `json:"endOfSupport,omitempty"`
	// Kubernetes is the range of Kubernetes versions that the version is supported on.
	Kubernetes KubernetesRange `json:"kubernetes,omitzero"`
}

// KubernetesRange is a range of Kubernetes versions, such as 1.32. Both ends are included, with all their patch
// releases. An empty end means no limit.
type KubernetesRange struct {
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
}

// String returns the range in words; empty if both ends are empty.
func (r KubernetesRange) String() string {
	switch {
	case r.Min != "" && r.Max == r.Min:
		return r.Min
	case r.Min != "" && r.Max != "":
		return r.Min + " to " + r.Max
	case r.Min != "":
		return r.Min + " or newer"
	case r.Max != "":
		return r.Max + " or older"
	}
	return ""
}

// Contains reports whether a Kubernetes version is in the range.
func (r KubernetesRange) Contains(version string) bool {
	isAboveMin := r.Min == "" || CompareKubernetes(version, r.Min) >= 0
	isBelowMax := r.Max == "" || CompareKubernetes(version, r.Max) <= 0
	return isAboveMin && isBelowMax
}

// ErrSupport means that a value of PropertySupport is not valid.
var ErrSupport = errors.New("invalid " + PropertySupport)

// ParseSupport decodes a value of PropertySupport. Errors wrap ErrSupport and name the field.
func ParseSupport(value []byte) (Support, error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.DisallowUnknownFields()
	var s Support
	err := decoder.Decode(&s)
	if err == nil {
		err = s.validate()
	}
	if _, tokenErr := decoder.Token(); err == nil && !errors.Is(tokenErr, io.EOF) {
		err = errors.New("there is more than one value")
	}
	if err != nil {
		return Support{}, fmt.Errorf("%w: %w", ErrSupport, err)
	}
	return s, nil
}

var minorVersionPattern = regexp.MustCompile(`^[1-9][0-9]{0,2}\.(0|[1-9][0-9]{0,3})$`)

// validate checks that at least one field is set, and the format and order of the values.
func (s Support) validate() error {
	if s == (Support{}) {
		return errors.New("it says neither endOfSupport nor kubernetes")
	}
	if _, err := time.Parse(time.DateOnly, s.EndOfSupport); s.EndOfSupport != "" && err != nil {
		return fmt.Errorf("endOfSupport %q is no day such as 2027-06-30", s.EndOfSupport)
	}
	for _, bound := range []struct{ field, version string }{{"min", s.Kubernetes.Min}, {"max", s.Kubernetes.Max}} {
		if bound.version != "" && !minorVersionPattern.MatchString(bound.version) {
			return fmt.Errorf("kubernetes.%s %q is no version such as 1.32", bound.field, bound.version)
		}
	}
	if s.Kubernetes.Min != "" && s.Kubernetes.Max != "" &&
		CompareKubernetes(s.Kubernetes.Min, s.Kubernetes.Max) > 0 {
		return fmt.Errorf("kubernetes.min %s is newer than kubernetes.max %s", s.Kubernetes.Min, s.Kubernetes.Max)
	}
	return nil
}

// IsSupportEnded reports whether a last day of support, such as 2027-06-30, has passed, in UTC. It returns false if day
// is empty or invalid.
func IsSupportEnded(day string, now time.Time) bool {
	lastDay, err := time.Parse(time.DateOnly, day)
	return err == nil && !now.Before(lastDay.AddDate(0, 0, 1))
}

// CompareKubernetes compares two Kubernetes versions by major and minor version, and returns -1, 0 or 1. An invalid
// version is the oldest.
func CompareKubernetes(a, b string) int {
	versionA, _ := semver.ParseTolerant(a)
	versionB, _ := semver.ParseTolerant(b)
	return cmp.Or(cmp.Compare(versionA.Major, versionB.Major), cmp.Compare(versionA.Minor, versionB.Minor))
}
