/** `bramble-controller checkpoints`: what nodes delivered after a restore, and what an operator must decide. */
import { join } from 'node:path'
import { type ConfigMap, ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import type { KubeObject } from '../../api/meta.ts'
import {
  checkpointCopyAnnotation,
  checkpointCopyLabel,
  contestedByAnnotation,
  learntByAnnotation,
  learntFromAnnotation,
  unprovenFromAnnotation,
} from '../../api/node/node-checkpoint.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { formatDuration } from '../../daemon/duration.ts'
import { checkpointWindowKey, leastOpenMs } from '../store/checkpoints/checkpoint-window.ts'
import { checkpointsRow } from './command-table.ts'
import { expectSuccess } from './connection/expect-success.ts'
import { readKubeconfig } from './connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from './run-command.ts'
import { textTable } from './text-table.ts'

const windowPath = `/api/v1/namespaces/${checkpointWindowKey.namespace}/configmaps/${checkpointWindowKey.name}`

/** `argv`: what follows `checkpoints`. The exit code. Never rejects for what was typed or what the API answers. */
export async function checkpointsCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(checkpointsRow, argv, output, ({ form, args, values }) => {
    const [node, object = ''] = args
    const act = async (work: Work) => {
      const kubeconfig = values.kubeconfig ?? join(values['data-dir'], 'kubeconfig')
      return work(apiClient(await readKubeconfig(kubeconfig)), output.signal)
    }
    switch (form) {
      case 'status':
        return () => act(checkpointsStatus)
      case 'close':
        return () => act(closeCheckpoints)
      case 'approve [NODE]':
        if ((node !== undefined) === values.all) return 'Give the name of one node, or --all'
        return () => act((client, signal) => approveCheckpoint(node, client, signal))
      case 'accept KIND NAMESPACE/NAME':
      case 'refuse KIND NAMESPACE/NAME': {
        const path = pathOfData(node, object)
        if (path === undefined) return 'Give secret or configmap, and its namespace and name: secret default/db'
        const decide = form.startsWith('accept') ? acceptContent : refuseContent
        return () => act((client, signal) => decide({ path, shown: `${node} ${object}` }, client, signal))
      }
    }
  })
}

type Client = Pick<ApiClient, 'get' | 'patch' | 'delete'>
type Work = (client: Client, signal: AbortSignal) => Promise<string>

/** Prints the window, the pods that are not approved, the conflicts and the copies. Throws when the API rejects a request. */
export async function checkpointsStatus(client: Client, signal: AbortSignal): Promise<string> {
  const [window, nodes, pods, secrets, maps] = await Promise.all([
    windowOf(client, signal),
    itemsOf(client, '/api/v1/nodes', signal),
    itemsOf(client, '/api/v1/pods', signal),
    itemsOf(client, '/api/v1/secrets', signal),
    itemsOf(client, '/api/v1/configmaps', signal),
  ])
  const claimed = pods.filter((pod) => annotation(pod, learntFromAnnotation) !== undefined)
  const data = [
    ...secrets.map((object) => ({ kind: 'secret', object })),
    ...maps.map((object) => ({ kind: 'configmap', object })),
  ]
  const contested = data.filter(({ object }) => annotation(object, contestedByAnnotation) !== undefined)
  const unproven = data.filter(({ object }) => annotation(object, unprovenFromAnnotation) !== undefined)
  const copies = secrets.filter(({ metadata }) => metadata.labels?.[checkpointCopyLabel] !== undefined)
  return [
    windowText(window, nodes),
    ...table('Pods that came with a checkpoint, not approved:', ['POD', 'NODE'], claimed, (pod) => [
      nameOf(pod),
      annotation(pod, learntFromAnnotation) ?? '',
    ]),
    ...table(
      'Content without a proof that a controller sent it, served only to the nodes that delivered it (accept or refuse it):',
      ['OBJECT', 'FROM'],
      unproven,
      (one) => [`${one.kind} ${nameOf(one.object)}`, annotation(one.object, learntFromAnnotation) ?? ''],
    ),
    ...table(
      'Conflicting content, served only to the nodes that delivered it:',
      ['OBJECT', 'FROM', 'CONTESTED BY'],
      contested,
      (one) => [
        `${one.kind} ${nameOf(one.object)}`,
        annotation(one.object, learntFromAnnotation) ?? '',
        annotation(one.object, contestedByAnnotation) ?? '',
      ],
    ),
    ...table('Copies of content that was not applied:', ['SECRET IN KUBE-SYSTEM', 'OF', 'FROM'], copies, (copy) => [
      copy.metadata.name ?? '',
      annotation(copy, checkpointCopyAnnotation) ?? '',
      annotation(copy, learntFromAnnotation) ?? '',
    ]),
  ].join('')
}

function windowText(window: ConfigMap | undefined, nodes: readonly KubeObject[]): string {
  const { state, store = '', openSeconds = '0', closedBecause = '', nodes: nodesOfBackup = '' } = window?.data ?? {}
  if (window === undefined) return 'Checkpoints are accepted only after a restore.\n'
  if (state !== 'open') return `Checkpoints are no longer accepted: ${closedBecause || 'closed by an administrator'}.\n`
  const late = nodes.filter((node) => annotation(node, learntByAnnotation) !== store)
  const since = formatDuration(Number(openSeconds) * 1000)
  return [
    `Checkpoints are accepted, for ${since} so far; ${nodes.length - late.length} of ${nodes.length} nodes are done.\n`,
    ...(late.length > 0 ? [`Not done: ${late.map(({ metadata }) => metadata.name).join(', ')}.\n`] : []),
    waitText(nodesOfBackup !== '', Number(openSeconds) * 1000),
  ].join('')
}

/** What waits while checkpoints are accepted, as `heldAfterRestore` decides. */
function waitText(hasNodes: boolean, openMs: number): string {
  if (hasNodes)
    return 'Workloads wait for all nodes of the backup, ten minutes at most; StatefulSets until checkpoints are no longer accepted.\n'
  return openMs < leastOpenMs ? 'Workloads wait until checkpoints have been accepted for ten minutes.\n' : ''
}

/** Closes the window. Throws when the API rejects a request. */
export async function closeCheckpoints(client: Client, signal: AbortSignal): Promise<string> {
  const window = await windowOf(client, signal)
  if (window?.data?.['state'] !== 'open') return 'Nothing to close: checkpoints are not accepted now.\n'
  const patch = { data: { state: 'closed', closedBecause: 'closed by an administrator' } }
  expectSuccess('Cannot close the checkpoint window', await client.patch(windowPath, patch, undefined, signal))
  return 'Checkpoints are no longer accepted. A node that sent none runs only the pods that this controller has.\n'
}

/** Approves the pods of the node, of all nodes where it is undefined. Throws when the API rejects a request. */
export async function approveCheckpoint(
  node: string | undefined,
  client: Client,
  signal: AbortSignal,
): Promise<string> {
  const claimed = (await itemsOf(client, '/api/v1/pods', signal)).filter((pod) => {
    const from = annotation(pod, learntFromAnnotation)
    return from !== undefined && (node === undefined || from === node)
  })
  const patch = { metadata: { annotations: { [learntFromAnnotation]: null } } }
  for (const { metadata } of claimed) {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`
    expectSuccess(
      `Cannot approve pod ${metadata.namespace}/${metadata.name}`,
      await client.patch(path, patch, undefined, signal),
    )
  }
  return `${claimed.length} pods approved: their nodes get the ConfigMaps and Secrets that they refer to.\n`
}

type NamedData = { readonly path: string; readonly shown: string }

/** Undefined: they name no Secret and no ConfigMap. */
function pathOfData(kind: string | undefined, object: string): string | undefined {
  const [, namespace, name] = /^([^/]+)\/([^/]+)$/.exec(object) ?? []
  if ((kind !== 'secret' && kind !== 'configmap') || namespace === undefined || name === undefined) return undefined
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/${kind}s/${encodeURIComponent(name)}`
}

/** Other nodes get it from now on. The nodes that delivered it keep it for the pods that are not approved. */
export async function acceptContent(data: NamedData, client: Client, signal: AbortSignal): Promise<string> {
  const { resourceVersion } = await waitingObject(data, client, signal)
  const annotations = { [unprovenFromAnnotation]: null, [contestedByAnnotation]: null }
  const answer = await client.patch(data.path, { metadata: { resourceVersion, annotations } }, undefined, signal)
  expectSuccess(`Cannot accept ${data.shown}`, answer)
  return `${data.shown} accepted: each node with a pod that refers to it gets it.\n`
}

/** Pods that refer to it wait until it is created. */
export async function refuseContent(data: NamedData, client: Client, signal: AbortSignal): Promise<string> {
  const { resourceVersion, uid } = await waitingObject(data, client, signal)
  const answer = await client.delete(data.path, signal, {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: { resourceVersion, uid },
  })
  expectSuccess(`Cannot refuse ${data.shown}`, answer)
  return `${data.shown} refused and deleted: pods that refer to it start when it is created again.\n`
}

/** Throws where no operator has to decide about it. */
async function waitingObject({ path, shown }: NamedData, client: Client, signal: AbortSignal) {
  const answer = await client.get(path, signal)
  expectSuccess(`Cannot read ${shown}`, answer)
  const { metadata } = answer.body as KubeObject
  const waits = [unprovenFromAnnotation, contestedByAnnotation].some((name) => metadata.annotations?.[name])
  if (!waits) throw new Error(`${shown} does not wait for a decision: bramble-controller checkpoints lists what does`)
  return metadata
}

async function windowOf(client: Client, signal: AbortSignal): Promise<ConfigMap | undefined> {
  const answer = await client.get(windowPath, signal)
  if (answer.status === 404) return undefined
  expectSuccess('Cannot read the checkpoint window', answer)
  const decoded = decode(ConfigMapSchema, answer.body)
  if (!decoded.ok) throw new Error('Cannot read the checkpoint window: the answer is not a ConfigMap')
  return decoded.value
}

async function itemsOf(client: Client, path: string, signal: AbortSignal): Promise<readonly KubeObject[]> {
  const answer = await client.get(path, signal)
  expectSuccess(`Cannot read ${path}`, answer)
  const { items } = answer.body as { readonly items?: readonly KubeObject[] }
  return items ?? []
}

function annotation({ metadata }: KubeObject, key: string): string | undefined {
  return metadata.annotations?.[key]
}

function nameOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}

function table<T>(
  title: string,
  header: readonly string[],
  items: readonly T[],
  row: (item: T) => readonly string[],
): readonly string[] {
  return items.length === 0 ? [] : [`\n${title}\n`, textTable([header, ...items.map(row)])]
}
