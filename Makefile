# make run    install what is missing, build, open the window
# make test   all tests: quick ones, then slow ones
# make build  the program with its window, as ./outcrop
# make cli    the program without a window and without cgo, as ./outcrop
# make cross  whether it builds for Windows, FreeBSD, macOS and arm64
#
# On Debian and Ubuntu missing system packages are installed by name, through
# sudo when that is needed; a machine that has them is left alone.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

GO ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# migrated_fynedo: all our calls into the toolkit are on its thread already; without
# the tag each refresh looks up its goroutine, 15 to 19 % of a streaming window.
# gles: the small OpenGL binding, 16 instead of 138 CPU-seconds of cgo in a
# first build. "make build GL=" takes the desktop one.
GL ?= gles
TAGS := migrated_fynedo $(GL)
# The same flags for quick and slow tests: what passed in the first run and has no
# slow part is not run again in the second.
TEST := CGO_ENABLED=0 $(GO) test -timeout 20m

# What the window needs to build, and what its tests need beside.
BUILD_PACKAGES := gcc libc6-dev pkg-config libgl1-mesa-dev libx11-dev libxcursor-dev \
	libxrandr-dev libxinerama-dev libxi-dev libxxf86vm-dev libwayland-dev libxkbcommon-dev
TEST_PACKAGES := $(BUILD_PACKAGES) pocl-opencl-icd ocl-icd-libopencl1 xvfb xauth libgl1-mesa-dri python3-pip \
	fish zsh
# Oclgrind, and Intel's drivers and compiler, which need no card to be tested with.
ifeq ($(shell dpkg --print-architecture 2>/dev/null),amd64)
TEST_PACKAGES += oclgrind intel-opencl-icd libze1
endif

.PHONY: run build cli cross test test-quick test-slow check packages test-packages clean

run: packages build
	./outcrop

build:
	CGO_ENABLED=1 $(GO) build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o outcrop .

cli:
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o outcrop .

test: test-quick test-slow

# Needs Go and nothing else: no package of ours but app/desktop uses cgo.
test-quick: check
	$(TEST) ./...

check:
	@unformatted="$$("$$($(GO) env GOROOT)/bin/gofmt" -l main.go app assets engine gpu)"; \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	CGO_ENABLED=0 $(GO) vet ./...

# The window's build, other systems' builds, whole processes, and real models
# that the package index carries.
test-slow: test-packages build cross
	CGO_ENABLED=0 $(GO) vet -tags slow ./...
	OUTCROP_WINDOW='$(CURDIR)/outcrop' $(TEST) -tags slow ./...

# The program without its window for other systems, and what its tests there
# would be: ours of the packages that it needs on each.
CROSS := windows/amd64 freebsd/amd64 darwin/arm64 linux/arm64
cross:
	@for t in $(CROSS); do \
		export CGO_ENABLED=0 GOOS="$${t%/*}" GOARCH="$${t#*/}"; \
		echo "for $$t"; \
		$(GO) build -o /dev/null . || exit 1; \
		$(GO) vet $$($(GO) list -deps -f '{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' .) || exit 1; \
	done

packages:
	@$(call install,$(BUILD_PACKAGES))

test-packages:
	@$(call install,$(TEST_PACKAGES))

clean:
	rm -rf outcrop outcrop.exe build

# install NAMES: what dpkg does not know as installed, and nothing when all is.
define install
if ! command -v dpkg-query >/dev/null; then \
	echo "This is no Debian or Ubuntu; these packages, or what they are called here, must be installed: $(1)"; exit 0; \
fi; \
missing=""; \
for p in $(1); do \
	[ "$$(dpkg-query -W -f '$${Status}' "$$p" 2>/dev/null || true)" = "install ok installed" ] || missing="$$missing $$p"; \
done; \
if [ -z "$$missing" ]; then exit 0; fi; \
echo "Installing:$$missing"; \
sudo=""; \
if [ "$$(id -u)" != 0 ]; then \
	if ! command -v sudo >/dev/null; then echo "Please run as root: apt-get install -y --no-install-recommends$$missing"; exit 1; fi; \
	sudo="sudo"; \
fi; \
$$sudo apt-get update -qq; \
$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing
endef
