// Package catalogue has EC2's instance types with their facts and prices, and the zones that have them, without asking AWS:
// for plans without a cloud, and for the simulated EC2. The types are a copy of real ones (catalogue.txt), or come from a file.
// On-demand prices are those of us-east-1; spot prices are invented, but behave like real ones (market.go).
//
// Reading order: catalogue, features, market, zone.
package catalogue

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// builtinCatalogue is the compact table of real instance families.
//
//go:embed catalogue.txt
var builtinCatalogue string

// InstanceType describes one EC2 instance type. Bandwidths are in Mbps, memory in MiB, disks in GB (10^9 bytes, as EC2
// prints them) and prices in US dollars per hour in us-east-1.
type InstanceType struct {
	Name              string
	Arch              string // "amd64" or "arm64", as Kubernetes calls them
	VCPUs             int
	MemoryMiB         int64
	MaxENIs           int // over all network cards
	DefaultCardENIs   int // on network card 0, from which pods get their addresses
	IPv4PerENI        int
	EFAs              int
	Trunking          bool
	Hypervisor        string // "nitro", "xen" or empty on bare metal
	BareMetal         bool
	Burstable         bool
	CurrentGeneration bool
	EncryptionTransit bool
	CPUManufacturer   string
	ClockGHz          float64
	NetworkMbps       int64
	NetworkPeakMbps   int64
	NetworkText       string
	EBSMbps           int64
	EBSBaselineMbps   int64
	NVMeGB            int64
	DiskGB            int64 // instance store that is not NVMe
	GPUs              int
	GPUName           string
	GPUManufacturer   string
	GPUMemoryMiB      int64 // of one GPU
	Neurons           int
	NeuronName        string
	NeuronCores       int // of one device
	NeuronMemoryMiB   int64
	UsageClasses      []string
	PriceUSD          float64 // on-demand, Linux, shared tenancy; 0 means not sold in us-east-1
}

// Supports reports whether the type is sold in the given usage class: "on-demand", "spot" or "capacity-block".
func (t *InstanceType) Supports(class string) bool { return slices.Contains(t.UsageClasses, class) }

// EC2Arch returns EC2's name for the type's architecture.
func (t *InstanceType) EC2Arch() string {
	if t.Arch == "arm64" {
		return "arm64"
	}
	return "x86_64"
}

// Catalogue is a set of instance types, sorted by name.
type Catalogue struct {
	types  []*InstanceType
	byName map[string]*InstanceType
}

// Types returns the types of the catalogue, sorted by name. The caller must not change the slice.
func (c *Catalogue) Types() []*InstanceType { return c.types }

// Type returns the type with that name, or nil.
func (c *Catalogue) Type(name string) *InstanceType { return c.byName[name] }

func of(types []*InstanceType) (*Catalogue, error) {
	c := &Catalogue{types: types, byName: make(map[string]*InstanceType, len(types))}
	slices.SortFunc(c.types, func(a, b *InstanceType) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range types {
		if c.byName[t.Name] != nil {
			return nil, fmt.Errorf("instance type %s is listed twice", t.Name)
		}
		c.byName[t.Name] = t
	}
	return c, nil
}

// Builtin returns the built-in instance types.
func Builtin() (*Catalogue, error) {
	return parseCatalogue(strings.NewReader(builtinCatalogue))
}

// parseCatalogue parses the compact table. A line
//
//	family NAME ARCH HYPERVISOR CPU-MANUFACTURER key=value... flag...
//
// starts a family with the properties that its sizes share, and each following line is one size:
//
//	SIZE VCPUS ENISxIPV4-PER-ENI key=value... flag...
//
// Keys: gib (memory; per vCPU on the family, of the whole machine on a size), usd (per hour; likewise), ghz, net and ebs
// (Gbps and Mbps, BASELINE or BASELINE-PEAK), text (EC2's words for the network performance, with _ for blanks, where they
// do not follow from net), nvme and disk (instance store, GB), efa, card (ENIs of network card 0 where it is not the only
// one), gpu (MANUFACTURER/NAME/MiB) with gpus, neuron (NAME/CORES/MiB) with neurons. Flags: previous (generation),
// burstable, encrypted (in transit), trunk (ENI trunking), nospot, block (sold as capacity blocks too).
func parseCatalogue(r io.Reader) (*Catalogue, error) {
	var types []*InstanceType
	var family catalogueFamily
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		var err error
		if words[0] == "family" {
			family, err = parseFamily(words[1:])
		} else {
			var t *InstanceType
			t, err = family.parseSize(words)
			types = append(types, t)
		}
		if err != nil {
			return nil, fmt.Errorf("catalogue line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	return of(types)
}

// catalogueFamily is a family line, which applies to the size lines below it.
type catalogueFamily struct {
	facts      InstanceType
	gibPerVCPU float64
	usdPerVCPU float64
}

func parseFamily(words []string) (catalogueFamily, error) {
	if len(words) < 4 {
		return catalogueFamily{}, fmt.Errorf("family line has %d words, want at least 4", len(words))
	}
	f := catalogueFamily{facts: InstanceType{
		Name: words[0], Arch: words[1], Hypervisor: words[2], CPUManufacturer: words[3],
		CurrentGeneration: true, UsageClasses: []string{"on-demand", "spot"},
	}}
	for _, word := range words[4:] {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "gib":
			f.gibPerVCPU, err = strconv.ParseFloat(value, 64)
		case "usd":
			f.usdPerVCPU, err = strconv.ParseFloat(value, 64)
		default:
			err = f.facts.apply(key, value)
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", word, err)
		}
	}
	return f, nil
}

func (f *catalogueFamily) parseSize(words []string) (*InstanceType, error) {
	if f.facts.Name == "" || len(words) < 3 {
		return nil, fmt.Errorf("%q is not a size of a family", strings.Join(words, " "))
	}
	t := f.facts
	t.Name += "." + words[0]
	if strings.HasPrefix(words[0], "metal") {
		t.BareMetal, t.Hypervisor = true, ""
	}
	var err error
	if t.VCPUs, err = strconv.Atoi(words[1]); err != nil {
		return nil, fmt.Errorf("vCPUs: %w", err)
	}
	if _, err := fmt.Sscanf(words[2], "%dx%d", &t.MaxENIs, &t.IPv4PerENI); err != nil {
		return nil, fmt.Errorf("ENIs %q: %w", words[2], err)
	}
	t.DefaultCardENIs = t.MaxENIs
	gib := f.gibPerVCPU * float64(t.VCPUs)
	t.PriceUSD = RoundPrice(f.usdPerVCPU * float64(t.VCPUs))
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "gib":
			gib, err = strconv.ParseFloat(value, 64)
		case "usd":
			t.PriceUSD, err = strconv.ParseFloat(value, 64)
		default:
			err = t.apply(key, value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	t.MemoryMiB = int64(math.Round(gib * 1024))
	if t.NetworkText == "" {
		t.NetworkText = networkText(t.NetworkMbps, t.NetworkPeakMbps)
	}
	if t.GPUs == 0 {
		t.GPUName, t.GPUManufacturer, t.GPUMemoryMiB = "", "", 0
	}
	if t.Neurons == 0 {
		t.NeuronName, t.NeuronCores, t.NeuronMemoryMiB = "", 0, 0
	}
	return &t, nil
}

// apply sets the field that a key of a family or size line stands for.
func (t *InstanceType) apply(key, value string) error {
	var err error
	switch key {
	case "ghz":
		t.ClockGHz, err = strconv.ParseFloat(value, 64)
	case "net":
		t.NetworkMbps, t.NetworkPeakMbps, err = parseBandwidth(value, 1000)
	case "ebs":
		t.EBSBaselineMbps, t.EBSMbps, err = parseBandwidth(value, 1)
	case "text":
		t.NetworkText = strings.ReplaceAll(value, "_", " ")
	case "nvme":
		t.NVMeGB, err = strconv.ParseInt(value, 10, 64)
	case "disk":
		t.DiskGB, err = strconv.ParseInt(value, 10, 64)
	case "efa":
		t.EFAs, err = strconv.Atoi(value)
	case "card":
		t.DefaultCardENIs, err = strconv.Atoi(value)
	case "gpus":
		t.GPUs, err = strconv.Atoi(value)
	case "gpu":
		t.GPUManufacturer, t.GPUName, t.GPUMemoryMiB, err = parseDevice(value)
	case "neurons":
		t.Neurons, err = strconv.Atoi(value)
	case "neuron":
		var cores string
		if t.NeuronName, cores, t.NeuronMemoryMiB, err = parseDevice(value); err == nil {
			t.NeuronCores, err = strconv.Atoi(cores)
		}
	case "previous":
		t.CurrentGeneration = false
	case "burstable":
		t.Burstable = true
	case "encrypted":
		t.EncryptionTransit = true
	case "trunk":
		t.Trunking = true
	case "nospot":
		t.UsageClasses = slices.DeleteFunc(slices.Clone(t.UsageClasses), func(c string) bool { return c == "spot" })
	case "block":
		t.UsageClasses = append([]string{"capacity-block"}, t.UsageClasses...)
	default:
		err = fmt.Errorf("unknown key %q", key)
	}
	return err
}

func parseDevice(value string) (first, second string, mib int64, err error) {
	parts := strings.Split(value, "/")
	if len(parts) != 3 {
		return "", "", 0, fmt.Errorf("want three parts, got %q", value)
	}
	mib, err = strconv.ParseInt(parts[2], 10, 64)
	return parts[0], strings.ReplaceAll(parts[1], "_", " "), mib, err
}

func parseBandwidth(value string, scale float64) (baseline, peak int64, err error) {
	low, high, ranged := strings.Cut(value, "-")
	if !ranged {
		high = low
	}
	b, err := strconv.ParseFloat(low, 64)
	if err != nil {
		return 0, 0, err
	}
	p, err := strconv.ParseFloat(high, 64)
	return int64(math.Round(b * scale)), int64(math.Round(p * scale)), err
}

// networkText formats a bandwidth as EC2 does.
func networkText(baseline, peak int64) string {
	text := strconv.FormatFloat(float64(peak)/1000, 'f', -1, 64) + " Gigabit"
	if baseline < peak {
		return "Up to " + text
	}
	return text
}

// RoundPrice rounds a price to a billionth, which removes what arithmetic has added.
func RoundPrice(usd float64) float64 { return math.Round(usd*1e9) / 1e9 }

// catalogueFileType is one entry of a catalogue file, without the fields that this package does not use.
type catalogueFileType struct {
	InstanceType            string   `json:"instanceType"`
	Arch                    string   `json:"arch"`
	VCPUs                   int      `json:"vcpus"`
	MemoryMiB               int64    `json:"memoryMiB"`
	MaxENIs                 int      `json:"maxENIs"`
	DefaultCardENIs         int      `json:"defaultCardENIs"`
	IPv4PerENI              int      `json:"ipv4PerENI"`
	EFAMax                  int      `json:"efaMax"`
	TrunkENISupported       bool     `json:"trunkENISupported"`
	Hypervisor              string   `json:"hypervisor"`
	BareMetal               bool     `json:"bareMetal"`
	Burstable               bool     `json:"burstable"`
	CurrentGeneration       bool     `json:"currentGeneration"`
	EncryptionInTransit     bool     `json:"encryptionInTransit"`
	CPUManufacturer         string   `json:"cpuManufacturer"`
	ClockGHz                float64  `json:"clockGHz"`
	NetworkMbps             int64    `json:"networkMbps"`
	NetworkPeakMbps         int64    `json:"networkPeakMbps"`
	NetworkText             string   `json:"networkText"`
	EBSMbps                 int64    `json:"ebsMbps"`
	EBSBaselineMbps         int64    `json:"ebsBaselineMbps"`
	LocalStorageGB          int64    `json:"localStorageGB"`
	LocalNVMeGB             int64    `json:"localNVMeGB"`
	GPUCount                int      `json:"gpuCount"`
	GPUName                 string   `json:"gpuName"`
	GPUManufacturer         string   `json:"gpuManufacturer"`
	GPUMemoryMiB            int64    `json:"gpuMemoryMiB"`
	AcceleratorCount        int      `json:"acceleratorCount"`
	AcceleratorName         string   `json:"acceleratorName"`
	AcceleratorManufacturer string   `json:"acceleratorManufacturer"`
	UsageClasses            []string `json:"usageClasses"`
	Virtualization          []string `json:"virtualization"`
	Price                   *float64 `json:"odPriceUsEast1"`
	Offered                 bool     `json:"offeredUsEast1"`
}

// Load reads a JSON file with an array of instance types. Types that us-east-1 does not offer, or that do not
// run HVM images, are left out.
func Load(path string) (*Catalogue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	var entries []catalogueFileType
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("read catalogue %s: %w", path, err)
	}
	var types []*InstanceType
	for i := range entries {
		e := &entries[i]
		if e.Offered && slices.Contains(e.Virtualization, "hvm") {
			types = append(types, e.instanceType())
		}
	}
	return of(types)
}

func (e *catalogueFileType) instanceType() *InstanceType {
	t := &InstanceType{
		Name: e.InstanceType, Arch: e.Arch, VCPUs: e.VCPUs, MemoryMiB: e.MemoryMiB,
		MaxENIs: e.MaxENIs, DefaultCardENIs: e.DefaultCardENIs, IPv4PerENI: e.IPv4PerENI, EFAs: e.EFAMax,
		Trunking: e.TrunkENISupported, Hypervisor: e.Hypervisor, BareMetal: e.BareMetal, Burstable: e.Burstable,
		CurrentGeneration: e.CurrentGeneration, EncryptionTransit: e.EncryptionInTransit,
		CPUManufacturer: e.CPUManufacturer, ClockGHz: e.ClockGHz,
		NetworkMbps: e.NetworkMbps, NetworkPeakMbps: e.NetworkPeakMbps, NetworkText: e.NetworkText,
		EBSMbps: e.EBSMbps, EBSBaselineMbps: e.EBSBaselineMbps,
		NVMeGB: e.LocalNVMeGB, DiskGB: e.LocalStorageGB - e.LocalNVMeGB,
		UsageClasses: e.UsageClasses,
	}
	if e.GPUCount > 0 {
		t.GPUs, t.GPUName, t.GPUManufacturer, t.GPUMemoryMiB = e.GPUCount, e.GPUName, e.GPUManufacturer, e.GPUMemoryMiB
	}
	if e.AcceleratorCount > 0 && e.AcceleratorManufacturer == "AWS" {
		t.Neurons, t.NeuronName = e.AcceleratorCount, e.AcceleratorName
		t.NeuronCores, t.NeuronMemoryMiB = neuronDevice(e.AcceleratorName)
	}
	if e.Price != nil {
		t.PriceUSD = *e.Price
	}
	return t
}

// neuronDevice returns the NeuronCores and the memory per device, which the catalogue file does not contain (AWS Neuron
// documentation, "NeuronCore architecture").
func neuronDevice(name string) (cores int, memoryMiB int64) {
	switch name {
	case "Inferentia":
		return 4, 8 * 1024
	case "Trainium2":
		return 8, 96 * 1024
	default:
		return 2, 32 * 1024
	}
}

// LoadOrBuiltin loads a file, or returns the built-in types if no file is named.
func LoadOrBuiltin(path string) (*Catalogue, error) {
	if path == "" {
		return Builtin()
	}
	return Load(path)
}
