// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// registryError is an error about a registry. Its text is ours alone: whoever names a registry may read the text, for
// instance in the status of an OperatorCatalog, and may have named a host that he cannot reach himself. What that
// host wrote, and where it redirected to, is the detail.
type registryError struct {
	kind   error
	text   string
	detail error
}

func (f *registryError) Error() string {
	if f.text == "" {
		return f.kind.Error()
	}
	return f.kind.Error() + ": " + f.text
}

// Unwrap leaves the detail out, so that nobody tells it by accident.
func (f *registryError) Unwrap() error { return f.kind }

func failf(kind error, format string, args ...any) error {
	return &registryError{kind: kind, text: fmt.Sprintf(format, args...)}
}

// maxDetail bounds what is kept of what others wrote.
const maxDetail = 1024

// Detail is what a registry, or the network on the way to it, said about an error of this package; at most 1,024 bytes,
// and empty if there is nothing. It may hold what any host wrote that can be reached from here: it is for a log, or for
// a person who runs this program himself, and never for an object that others read.
func Detail(err error) string {
	var f *registryError
	if !errors.As(err, &f) || f.detail == nil {
		return ""
	}
	text := f.detail.Error()
	if len(text) > maxDetail {
		text = text[:maxDetail]
	}
	return strings.ToValidUTF8(text, "")
}

// errorCodes are those that the OCI and Docker specifications have. Others are free text of whoever answers.
var errorCodes = []transport.ErrorCode{
	transport.BlobUnknownErrorCode, transport.BlobUploadInvalidErrorCode, transport.BlobUploadUnknownErrorCode,
	transport.DigestInvalidErrorCode, transport.ManifestBlobUnknownErrorCode, transport.ManifestInvalidErrorCode,
	transport.ManifestUnknownErrorCode, transport.ManifestUnverifiedErrorCode, transport.NameInvalidErrorCode,
	transport.NameUnknownErrorCode, transport.SizeInvalidErrorCode, transport.TagInvalidErrorCode,
	transport.UnauthorizedErrorCode, transport.DeniedErrorCode, transport.UnsupportedErrorCode,
	transport.TooManyRequestsErrorCode, transport.UnknownErrorCode, transport.UnavailableErrorCode,
}

// classify gives an error of the library or of the network its meaning, in words of ours.
func classify(err error) error {
	if err == nil {
		return nil
	}
	var made *registryError
	if errors.As(err, &made) {
		return made // what the library and the network added to it is dropped
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return err // of this machine, such as a full disk
	}
	for _, known := range []error{ErrDigestMismatch, ErrTooLarge, ErrBadSource, context.Canceled} {
		if errors.Is(err, known) {
			return &registryError{kind: known, detail: err}
		}
	}
	// On the loopback interface the library tries plain HTTP as well, and has two errors to tell.
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return &registryError{kind: ErrUntrusted, text: untrustedBecause(certificate), detail: err}
	}
	var answer *transport.Error
	if errors.As(err, &answer) {
		return &registryError{kind: kindOf(answer.StatusCode), text: describeAnswer(answer), detail: err}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return &registryError{kind: ErrUnreachable, text: "it serves plain HTTP, and HTTPS was expected", detail: err}
	}
	return &registryError{kind: ErrUnreachable, text: "no answer, or none of a registry", detail: err}
}

func kindOf(status int) error {
	switch status {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrDenied
	}
	return ErrFailed
}

// describeAnswer has the status of an answer and the codes of it that the specifications know.
func describeAnswer(answer *transport.Error) string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
	var codes []string
	for _, d := range answer.Errors {
		if slices.Contains(errorCodes, d.Code) && !slices.Contains(codes, string(d.Code)) {
			codes = append(codes, string(d.Code))
		}
	}
	if len(codes) > 0 {
		text += " (" + strings.Join(codes, ", ") + ")"
	}
	return text
}

// untrustedBecause does not tell for which names a certificate is.
func untrustedBecause(err *tls.CertificateVerificationError) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &authority):
		return "signed by an unknown authority"
	case errors.As(err, &host):
		return "it is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired, or is not valid yet"
	}
	return "it is not valid"
}
