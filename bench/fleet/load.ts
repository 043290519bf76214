/** A process of the load: some of the fleet's nodes, which do what the parent asks. Nodes that lose their connection return by themselves. */
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type ConnectedNode, connectNode } from './node.ts'

export type Issued = { readonly certificate: string; readonly key: string }
export type LoadSettings = {
  /** A JSON file: the certificates of all nodes, by index. */
  readonly certificates: string
  readonly ca: string
  readonly port: number
  readonly first: number
  readonly count: number
  readonly pods: number
  readonly sameImages: boolean
  readonly oneAddress: boolean
  /** How many connect at a time. */
  readonly atOnce: number
  /** Between two heartbeats of a node. */
  readonly beatMs: number
}
export type Order =
  | { readonly order: 'settings'; readonly settings: LoadSettings }
  | { readonly order: 'connect' | 'reconnect' | 'await' | 'count' | 'end' }
  | { readonly order: 'beat'; readonly seconds: number }
/** `beats`: heartbeats sent since the start, but for those with which nodes announce themselves. */
export type Answer = { readonly done: Order['order']; readonly beats: number; readonly failures: number }

/** As an agent, all the time: else the controller would find the fleet silent while it is measured. */
const usualBeatMs = 10_000
const nodes = new Map<number, ConnectedNode>()
/** Read once for each node, which an agent does on a machine of its own. */
const contexts = new Map<number, SecureContext>()
let settings: LoadSettings | undefined
let issued: readonly Issued[] = []
let failures = 0
let beats = 0
let ending = false

process.on('message', (order: Order) => {
  obey(order).then(
    () => process.send?.({ done: order.order, beats, failures } satisfies Answer),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
})

async function obey(order: Order): Promise<void> {
  switch (order.order) {
    case 'settings':
      settings = order.settings
      issued = JSON.parse(await readFile(settings.certificates, 'utf8')) as readonly Issued[]
      return
    case 'connect':
      await each((index) => keepConnected(index))
      return
    case 'reconnect':
      // Few at a time: each is to be back within nodeConnectionLossDebounce.
      await each(async (index) => {
        nodes.get(index)?.cut()
        nodes.delete(index)
        while (!nodes.has(index)) await delay(5)
      }, 8)
      return
    case 'await':
      while (nodes.size < present().count) await delay(20)
      return
    case 'beat':
      return await beatFor(order.seconds)
    case 'count':
      return
    case 'end':
      ending = true
      setTimeout(() => process.exit(0), 100)
      return
  }
}

function present(): LoadSettings {
  if (settings === undefined) throw new Error('No settings were given')
  return settings
}

async function each(work: (index: number) => Promise<void>, most = Number.POSITIVE_INFINITY): Promise<void> {
  const { first, count, atOnce } = present()
  let next = first
  const worker = async () => {
    while (next < first + count) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, most) }, worker))
}

/** Resolves at the first connection; from then on the node returns whenever its connection ends. */
async function keepConnected(index: number): Promise<void> {
  const connected = await connectAtLast(index)
  nodes.set(index, connected)
  const beating = setInterval(() => beat(connected), usualBeatMs * (1 + 0.04 * Math.random()))
  void connected.ended.then(() => clearInterval(beating))
  void connected.ended.then(async () => {
    if (nodes.get(index) === connected) {
      nodes.delete(index)
      await delay(500 + Math.random() * 2_000)
    }
    if (!ending) await keepConnected(index)
  })
}

async function connectAtLast(index: number): Promise<ConnectedNode> {
  const { port, pods, sameImages, oneAddress } = present()
  for (let attempt = 0; ; attempt++) {
    const localAddress = oneAddress ? undefined : `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`
    try {
      return await connectNode({ index, port, secureContext: contextOf(index), pods, sameImages, localAddress })
    } catch {
      failures += 1
      // As the agent: full jitter below a doubling limit.
      await delay(200 + Math.random() * Math.min(8_000, 1_000 * 2 ** attempt))
    }
  }
}

function contextOf(index: number): SecureContext {
  const { certificate: cert, key } = issued[index] ?? { certificate: '', key: '' }
  const context = contexts.get(index) ?? createSecureContext({ ca: present().ca, cert, key })
  contexts.set(index, context)
  return context
}

function beat(node: ConnectedNode | undefined): void {
  if (node === undefined) return
  node.beat()
  beats += 1
}

/** Every node beats once more in `beatMs`, spread over it. */
async function beatFor(seconds: number): Promise<void> {
  const beating = [...nodes.keys()]
  const { beatMs } = present()
  let sent = 0
  const startMs = performance.now()
  for (const total = Math.round((beating.length * seconds * 1000) / beatMs); sent < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - startMs) * beating.length) / beatMs))
    for (; sent < due; sent++) beat(nodes.get(beating[sent % beating.length] ?? -1))
    await delay(20)
  }
}
