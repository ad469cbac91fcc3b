// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// BuildInfo is 1 for each running program.
const BuildInfo = "bellwether_build_info"

// Labels of BuildInfo.
const (
	// Component is hub, agent or remote-write-gate.
	Component = "component"
	// Revision is the hash of the commit that a program was built from.
	Revision = "revision"
	// GoVersion is the version of Go that it was built with.
	GoVersion = "goversion"
)

// Programs returns the series that every program exports about itself, including each replica of the hub.
func Programs() []Series {
	return []Series{{BuildInfo, "gauge", []string{Component, Version, Revision, GoVersion},
		"1, with the version of the program, and the commit and the version of Go that it was built from."}}
}
