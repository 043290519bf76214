/** Compares the answers of Bramble's API with those of Kubernetes' own: see --help. */
import { type ApiAccess, readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { withKubeApiserver } from './api/kube-apiserver.ts'
import { apiInputs } from './kubernetes/api-inputs.ts'
import { answersTo, differences, inputSender } from './kubernetes/comparison.ts'
import { benchmarkOptions, rejectOptions } from './options/benchmark-options.ts'

const benchmark = {
  name: 'node dist/bench/kubernetes.js',
  text: `Sends the ${apiInputs.length} inputs of bench/kubernetes/api-inputs.ts to a kube-apiserver of Kubernetes 1.32 and to Bramble's API, each in a namespace
that is made and deleted, and prints for each whether the answers are equal, and how they differ. With one of the two it is compared
with the answers that the file has, which the test suite expects of Bramble. No input needs a controller or a node: a kube-apiserver with
an etcd is enough, and --kube-apiserver starts both from the program and the installed etcd. The program is built from Kubernetes'
source with Go 1.23 or later: go build ./cmd/kube-apiserver. A fork may differ: OpenShift's leaves the checks of etcd out of /readyz.
Needs the rights of an administrator. Exit status 1: a difference that is not documented.`,
  options: {
    kubernetes: { value: 'KUBECONFIG', help: 'of Kubernetes; its current context' },
    'kube-apiserver': { value: 'PROGRAM', help: 'start this one in place of --kubernetes' },
    bramble: { value: 'KUBECONFIG', help: "of Bramble: 'bramble-controller kubeconfig' prints one" },
    all: { help: 'print equal answers, too' },
  },
} as const

const { kubernetes, bramble, all, 'kube-apiserver': program } = benchmarkOptions(benchmark)
if (kubernetes === undefined && program === undefined && bramble === undefined) {
  rejectOptions(benchmark, 'Name at least one server, with --kubernetes, --kube-apiserver or --bramble')
}
if (kubernetes !== undefined && program !== undefined) {
  rejectOptions(benchmark, 'Name Kubernetes with --kubernetes or with --kube-apiserver, not with both')
}
const ofBramble = bramble === undefined ? undefined : await readKubeconfig(bramble)
if (program !== undefined) await withKubeApiserver(program, ({ access }) => compareAnswers(access, ofBramble, all))
else await compareAnswers(kubernetes === undefined ? undefined : await readKubeconfig(kubernetes), ofBramble, all)

async function compareAnswers(
  kubernetes: ApiAccess | undefined,
  bramble: ApiAccess | undefined,
  all: boolean,
): Promise<void> {
  const ask = async (access: ApiAccess) => await answersTo(apiInputs, inputSender(access))
  const known = apiInputs.map(({ expected }) => expected)
  const [expected, found] = [
    kubernetes === undefined ? known : await ask(kubernetes),
    bramble === undefined ? known : await ask(bramble),
  ]
  let unexpected = 0
  for (const [index, { name, differs }] of apiInputs.entries()) {
    const [wanted, got] = [expected[index], found[index]]
    if (wanted === undefined || got === undefined) continue
    const rows = differences(wanted, got)
    const isDocumented = differs !== undefined && bramble !== undefined
    if (rows.length > 0 && !isDocumented) unexpected++
    if (rows.length === 0 && !all) continue
    print(name, rows, isDocumented ? differs : undefined)
  }
  console.log(`${apiInputs.length} inputs, ${unexpected} differences that are not documented`)
  process.exitCode = unexpected > 0 ? 1 : 0
}

function print(name: string, rows: readonly string[], documented: string | undefined): void {
  const why = documented === undefined ? '' : ` (documented: ${documented})`
  console.log(`${rows.length === 0 ? 'equal  ' : 'differs'}  ${name}${why}`)
  for (const row of rows) console.log(`           ${row}`)
}
