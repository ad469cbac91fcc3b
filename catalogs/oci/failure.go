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

// registryError is an error about a registry. Its text contains only words of this package. A user who names a
// registry might be able to read the text, for instance in the status of an OperatorCatalog, and might have named a
// host that the user cannot reach. So the response of the host, and the target of a redirect, are in detail only.
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

// Unwrap does not return the detail, so that the detail is not disclosed by accident.
func (f *registryError) Unwrap() error { return f.kind }

// errorf returns a registryError without a detail.
func errorf(kind error, format string, args ...any) error {
	return &registryError{kind: kind, text: fmt.Sprintf(format, args...)}
}

// maxDetail bounds the detail, in bytes.
const maxDetail = 1024

// Detail returns the response of a registry, or the network error, that led to an error of this package: at most
// 1,024 bytes, and empty if there is none. It can contain the output of any host that this process can reach. Use it
// only in logs and for the user who runs this program, never in an object that other users can read.
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

// errorCodes are the codes of the OCI and Docker specifications. Other codes are free text of the responding host.
var errorCodes = []transport.ErrorCode{
	transport.BlobUnknownErrorCode, transport.BlobUploadInvalidErrorCode, transport.BlobUploadUnknownErrorCode,
	transport.DigestInvalidErrorCode, transport.ManifestBlobUnknownErrorCode, transport.ManifestInvalidErrorCode,
	transport.ManifestUnknownErrorCode, transport.ManifestUnverifiedErrorCode, transport.NameInvalidErrorCode,
	transport.NameUnknownErrorCode, transport.SizeInvalidErrorCode, transport.TagInvalidErrorCode,
	transport.UnauthorizedErrorCode, transport.DeniedErrorCode, transport.UnsupportedErrorCode,
	transport.TooManyRequestsErrorCode, transport.UnknownErrorCode, transport.UnavailableErrorCode,
}

// classify converts an error of the library or of the network to an error of this package, whose text contains no
// foreign text.
func classify(err error) error {
	if err == nil {
		return nil
	}
	var own *registryError
	if errors.As(err, &own) {
		return own // drop the text that the library and the network added
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return err // an error of the local file system, such as a full disk
	}
	for _, sentinel := range []error{ErrDigestMismatch, ErrTooLarge, ErrBadSource, context.Canceled} {
		if errors.Is(err, sentinel) {
			return &registryError{kind: sentinel, detail: err}
		}
	}
	// On the loopback interface the library also tries plain HTTP, and then returns two errors. The error of the
	// certificate is the cause of the other.
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return &registryError{kind: ErrUntrusted, text: describeCertificateError(certificate), detail: err}
	}
	var response *transport.Error
	if errors.As(err, &response) {
		return &registryError{kind: classifyStatus(response.StatusCode), text: describeResponse(response), detail: err}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return &registryError{kind: ErrUnreachable, text: "it serves plain HTTP, and HTTPS was expected", detail: err}
	}
	return &registryError{kind: ErrUnreachable, text: "no answer, or none of a registry", detail: err}
}

func classifyStatus(status int) error {
	switch status {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrDenied
	}
	return ErrFailed
}

// describeResponse returns the status of a response and its error codes, without codes that the specifications do
// not have.
func describeResponse(response *transport.Error) string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	var codes []string
	for _, d := range response.Errors {
		if slices.Contains(errorCodes, d.Code) && !slices.Contains(codes, string(d.Code)) {
			codes = append(codes, string(d.Code))
		}
	}
	if len(codes) > 0 {
		text += " (" + strings.Join(codes, ", ") + ")"
	}
	return text
}

// describeCertificateError returns why a certificate is not trusted. It does not disclose for which names the
// certificate is valid.
func describeCertificateError(err *tls.CertificateVerificationError) string {
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
