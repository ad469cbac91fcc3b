// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package folder

// PublishPackage moves the file of a package from a stage to an output folder, and returns a function that
// undoes this.
func PublishPackage(stage, out string, p Package) (undo func(), err error) {
	return (&compiler{stage: stage, out: out}).publishPackage(p)
}
