/** Compares the answers of Bramble's API with those of Kubernetes' own: see --help. */
import { parseArgs } from 'node:util'
import { readKubeconfig } from '../broker-controller/kubeconfig.ts'
import { apiInputs } from './kubernetes/api-inputs.ts'
import { answersTo, differences, inputSender } from './kubernetes/comparison.ts'

const help = `Usage: node dist/bench/kubernetes.js [--kubernetes KUBECONFIG] [--bramble KUBECONFIG] [--all]

Sends the ${apiInputs.length} inputs of bench/kubernetes/api-inputs.ts to a kube-apiserver of Kubernetes 1.32 and to Bramble's API, each in a namespace
that is made and deleted, and prints for each whether the answers are equal, and how they differ. With one of the two it is compared
with the answers that the file has, which the test suite expects of Bramble. No input needs a controller or a node: a kube-apiserver with
an etcd is enough. Needs the rights of an administrator. Exit status 1: a difference that is not documented.

  --kubernetes KUBECONFIG  of Kubernetes; its current context
  --bramble KUBECONFIG     of Bramble: 'bramble-controller kubeconfig' prints one
  --all                    print equal answers, too
  --help`

const options = {
  kubernetes: { type: 'string' },
  bramble: { type: 'string' },
  all: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

const { values } = parseArgs({ options })
if (values.help) console.log(help)
else if (values.kubernetes === undefined && values.bramble === undefined) {
  console.error(`Name at least one kubeconfig.\n\n${help}`)
  process.exitCode = 64
} else await compare(values.kubernetes, values.bramble, values.all ?? false)

async function compare(kubernetes: string | undefined, bramble: string | undefined, all: boolean): Promise<void> {
  const ask = async (path: string) => await answersTo(apiInputs, inputSender(await readKubeconfig(path)))
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
    console.log(
      `${rows.length === 0 ? 'equal  ' : 'differs'}  ${name}${isDocumented ? ` (documented: ${differs})` : ''}`,
    )
    for (const row of rows) console.log(`           ${row}`)
  }
  console.log(`${apiInputs.length} inputs, ${unexpected} differences that are not documented`)
  process.exitCode = unexpected > 0 ? 1 : 0
}
