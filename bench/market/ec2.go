package market

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/offline"
)

// CatalogueVariable is the environment variable that names a file of instance types to use instead of the built-in ones.
const CatalogueVariable = "TENON_CATALOGUE"

// EC2 returns the instance types of EC2 in three zones of us-east-1, on-demand and spot, sized and labelled by the AWS
// provider for nodes of Amazon Linux 2023. The data are the simulator's own catalogue, which every checkout has, or the
// catalogue file named by the environment.
func EC2(ctx context.Context) (types []*cloud.InstanceType, err error) {
	account, err := offline.New(offline.Options{CatalogueFile: os.Getenv(CatalogueVariable)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class-default", Generation: 1},
		Spec:       awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}},
	}
	types, _, err = account.InstanceTypes(ctx, class)
	return types, err
}

// Common returns the types of EC2 that most clusters buy: machines of the sixth and seventh generation with up to 32 cores,
// of the general-purpose, compute and memory families.
func Common(ctx context.Context) ([]*cloud.InstanceType, error) {
	all, err := EC2(ctx)
	return slices.DeleteFunc(all, func(t *cloud.InstanceType) bool {
		family, _, _ := strings.Cut(t.Name, ".")
		return !slices.Contains([]string{"m6i", "c6i", "r6i", "m7i", "c7i", "r7i", "m6a", "c6a", "r6a", "m7a", "c7a", "r7a"}, family) || t.Capacity.Cpu().Value() > 32
	}), err
}
