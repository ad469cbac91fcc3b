// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Mount says which folder of the host stands for a path in the container.
type Mount struct{ Path, Dir string }

// Mounts are a container's mounts, longest path first. Processes see the
// host's file system, so paths below a mount are rewritten wherever they are
// handed to the process: in its arguments and environment.
type Mounts []Mount

// NewMounts returns the mounts of c; dir gives the folder of a volume.
func NewMounts(c *corev1.Container, dir func(volume string) string) Mounts {
	mounts := make(Mounts, 0, len(c.VolumeMounts))
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, Mount{
			Path: path.Clean(m.MountPath),
			Dir:  filepath.Join(dir(m.Name), filepath.FromSlash(m.SubPath)),
		})
	}
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	return mounts
}

// Dir returns the folder that is mounted at exactly the given path.
func (m Mounts) Dir(mountPath string) (string, bool) {
	for _, mount := range m {
		if mount.Path == mountPath {
			return mount.Dir, true
		}
	}
	return "", false
}

// Rewrite replaces every path at or below a mount in s. A path begins at the
// start of s or after a character that no path has (as in --dir=/certs or
// a:/b), so that neither /var/certs nor http://host/certs is taken for /certs.
func (m Mounts) Rewrite(s string) string {
	if len(m) == 0 || !strings.Contains(s, "/") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		if mount, ok := m.at(s, i); ok {
			out.WriteString(mount.Dir)
			i += len(mount.Path)
			continue
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// at returns the mount whose path begins at s[i].
func (m Mounts) at(s string, i int) (Mount, bool) {
	if s[i] != '/' || (i > 0 && inPath(s[i-1])) {
		return Mount{}, false
	}
	for _, mount := range m {
		rest, ok := strings.CutPrefix(s[i:], mount.Path)
		if ok && mount.Path != "/" && (rest == "" || rest[0] == '/' || !inPath(rest[0])) {
			return mount, true
		}
	}
	return Mount{}, false
}

func inPath(c byte) bool {
	return c == '/' || c == '.' || c == '-' || c == '_' || c == '~' || c == '%' || c == '@' ||
		(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}
