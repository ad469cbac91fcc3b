// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder

import "strings"

// template is the content of a new ladder file.
const template = `# The versions of PACKAGE, and how far each has come. Compile it with
# "bellwether catalog compile"; all fields are in docs/reference/ladder.md.
apiVersion: bellwether.dev/v1alpha1
kind: CatalogLadder
package: PACKAGE

# The ladder, lowest first: a new version enters at the first channel, and
# "bellwether catalog promote" takes it to the next one.
channels: [CHANNELS]

# "bellwether catalog add" fills this in: images by digest, or bundle folders
# beside this file.
bundles: []

# Versions that nobody may be brought to: "bellwether catalog block".
blocks: []
`

// NewCommented returns the ladder file of a package, without versions and with comments that explain its format. file
// is its name in error messages, and channels are the channels, lowest first. The error wraps ErrInvalid.
func NewCommented(file, pkg string, channels []string) (*File, error) {
	text := strings.NewReplacer("PACKAGE", pkg, "CHANNELS", strings.Join(channels, ", ")).Replace(template)
	return Parse(file, []byte(text))
}
