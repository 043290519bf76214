/** One node of the load: what an agent sends and waits for when it connects, without what it does on its machine. */
import { connect, type SecureContext, type TLSSocket } from 'node:tls'
import mqtt, { type Packet } from 'mqtt-packet'
import { digestText, emptyDigest, foldDigest } from '../../api/digest.ts'
import type { NodeStatus } from '../../api/node.ts'
import type { PodStatus } from '../../api/pod.ts'
import { type CallMessage, type NodeTopic, type StatsMessage, topicName } from '../../api/topics.ts'

export type NodeOfLoad = {
  readonly index: number
  readonly port: number
  /** With its certificate, and the authority that it trusts. */
  readonly secureContext: SecureContext
  readonly pods: number
  /** All nodes report the same images, as those of a real fleet do; otherwise no two nodes have one in common. */
  readonly sameImages: boolean
  /** The local address it connects from; undefined: the usual one. */
  readonly localAddress: string | undefined
}

export interface ConnectedNode {
  /** Sends one heartbeat. */
  beat(): void
  /** Cuts the connection without a goodbye. */
  cut(): void
  /** Resolves when the connection has ended. */
  readonly ended: Promise<void>
}

export const nodeName = (index: number): string => `node-${index}`
export const podName = (index: number, pod: number): string => `web-${index}-${pod}`
export const podUID = (index: number, pod: number): string =>
  `00000000-0000-4000-8000-${(index * 1000 + pod).toString(16).padStart(12, '0')}`

/**
 * Resolves when the node is taken in: connected, subscribed, with its `desired`, and every report acknowledged. Rejects
 * when the connection ends before, or after a minute.
 */
export function connectNode(node: NodeOfLoad): Promise<ConnectedNode> {
  const { port, secureContext, localAddress } = node
  const host = '127.0.0.1'
  const socket = connect({ port, host, servername: 'localhost', secureContext, ...(localAddress && { localAddress }) })
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error('not taken in within a minute')), 60_000)
    const ended = new Promise<void>((end) => {
      socket.once('close', () => {
        clearTimeout(timer)
        reject(new Error('the connection ended'))
        end()
      })
    })
    socket.on('error', reject)
    socket.setNoDelay(true)
    const session = new Session(socket, node, () => {
      clearTimeout(timer)
      resolve({ beat: () => session.beat(), cut: () => socket.destroy(), ended })
    })
    socket.once('secureConnect', () => session.open())
  })
}

class Session {
  private readonly topic: (kind: Exclude<NodeTopic['kind'], 'pod'>) => string
  private readonly waiting = new Set<string>()
  private messageId = 0
  private sequence = 0
  private digest = emptyDigest
  private sampling: NodeJS.Timeout | undefined

  private readonly socket: TLSSocket
  private readonly node: NodeOfLoad
  private readonly takenIn: () => void

  constructor(socket: TLSSocket, node: NodeOfLoad, takenIn: () => void) {
    this.socket = socket
    this.node = node
    this.takenIn = takenIn
    this.topic = (kind) => topicName({ kind, node: nodeName(node.index) })
    const parser = mqtt.parser()
    parser.on('packet', (packet) => this.read(packet))
    socket.on('data', (piece: Buffer) => parser.parse(piece))
  }

  open(): void {
    this.waiting.add('connack').add('desired')
    const will = {
      topic: this.topic('connection'),
      payload: Buffer.from(connection('lost')),
      qos: 1,
      retain: true,
    } as const
    this.write({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 4,
      clean: true,
      clientId: nodeName(this.node.index),
      keepalive: 60,
      will,
    })
  }

  beat(): void {
    this.sequence += 1
    this.publish(this.topic('lease'), JSON.stringify({ seq: this.sequence, digest: this.digest }), 0, false)
  }

  private read(packet: Packet): void {
    if (packet.cmd === 'connack') this.greet()
    if (packet.cmd === 'publish' && packet.qos === 1) this.write({ cmd: 'puback', messageId: packet.messageId ?? 0 })
    if (packet.cmd === 'publish' && packet.topic === this.topic('desired')) this.done('desired')
    if (packet.cmd === 'publish' && packet.topic === this.topic('calls')) this.called(String(packet.payload))
    if (packet.cmd === 'suback') this.report(packet.messageId ?? 0)
    if (packet.cmd === 'puback') this.done(`ack-${packet.messageId}`)
    if (packet.cmd === 'connack') this.done('connack')
  }

  /** In the order of the agent: online, subscriptions, then its whole status, then a heartbeat. */
  private greet(): void {
    this.publish(this.topic('connection'), connection('online'), 1, true)
    this.messageId += 1
    this.waiting.add(`ack-${this.messageId}`)
    const topics = [this.topic('desired'), this.topic('calls'), topicName({ kind: 'controller' })]
    const subscriptions = topics.map((topic) => ({ topic, qos: 1 }) as const)
    this.write({ cmd: 'subscribe', messageId: this.messageId, subscriptions })
  }

  private report(messageId: number): void {
    for (const { topic, body } of this.reportAll()) this.digest = foldDigest(this.digest, digestText(topic, body))
    this.beat()
    this.done(`ack-${messageId}`)
  }

  private reportAll(): readonly Report[] {
    const reports = reportsOf(this.node)
    for (const { topic, body } of reports) this.publish(topic, body, 1, true)
    return reports
  }

  /** Usage is published until the end of the last call for it. */
  private called(body: string): void {
    const { call, seconds = 0, everySeconds = 10 }: Partial<CallMessage> = JSON.parse(body)
    if (call === 'report') this.reportAll()
    if (call !== 'stats') return
    clearInterval(this.sampling)
    const untilMs = performance.now() + seconds * 1000
    const sample = () => {
      if (performance.now() > untilMs || this.socket.destroyed) return clearInterval(this.sampling)
      this.publish(this.topic('stats'), JSON.stringify(usageOf(this.node.index)), 0, false)
    }
    this.sampling = setInterval(sample, everySeconds * 1000)
    setTimeout(sample, 1_000 * Math.random())
  }

  private publish(topic: string, payload: string, qos: 0 | 1, retain: boolean): void {
    if (qos === 1) {
      this.messageId += 1
      this.waiting.add(`ack-${this.messageId}`)
    }
    this.write({
      cmd: 'publish',
      topic,
      payload,
      qos,
      retain,
      dup: false,
      ...(qos === 1 && { messageId: this.messageId }),
    })
  }

  private done(what: string): void {
    if (this.waiting.delete(what) && this.waiting.size === 0) this.takenIn()
  }

  private write(packet: Packet): void {
    if (!this.socket.destroyed) this.socket.write(mqtt.generate(packet))
  }
}

type Report = { readonly topic: string; readonly body: string }

function reportsOf({ index, pods, sameImages }: NodeOfLoad): readonly Report[] {
  const node = nodeName(index)
  const ofPods = Array.from({ length: pods }, (_, pod) => {
    const uid = podUID(index, pod)
    const message = {
      namespace: 'default',
      name: podName(index, pod),
      uid,
      observedResourceVersion: '1',
      status: podStatus(),
    }
    return { topic: topicName({ kind: 'pod', node, uid }), body: JSON.stringify(message) }
  })
  return [{ topic: topicName({ kind: 'status', node }), body: JSON.stringify(statusOf(index, sameImages)) }, ...ofPods]
}

/** Usage of a machine that always does a little work. */
function usageOf(index: number): StatsMessage {
  const time = new Date().toISOString()
  const cpu = { time, usageNanoCores: Math.round((0.1 + Math.random() * 0.3) * 1e9) }
  const memory = { time, workingSetBytes: Math.round((1 + Math.random() * 0.05) * 2 ** 30) }
  const machine = {
    ...{ celsius: 40 + (index % 20) + Math.random() * 3, load: 0.3 + Math.random() * 0.1 },
    ...{ diskUsedBytes: 3e9 + index * 1e7, diskCapacityBytes: 3e10 },
  }
  const node = { nodeName: nodeName(index), startTime: '2026-01-01T00:00:00Z', cpu, memory }
  return { time, windowSeconds: 30, summary: { node, pods: [] }, machine }
}

function connection(state: 'online' | 'lost'): string {
  return JSON.stringify({ state, bootID: '4f7a1e62-95f5-4d0c-9f0e-5b9f9a6f3c11', agentVersion: 'bench' })
}

/** About 11 kB: the fifty images that an agent reports at most. */
function statusOf(index: number, sameImages: boolean): NodeStatus {
  const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
    ...{ type, status, reason, message },
    ...{ lastHeartbeatTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z' },
  })
  const resources = { cpu: '4', memory: '3884364Ki', pods: '110', 'ephemeral-storage': '30512120Ki' }
  return {
    capacity: resources,
    allocatable: { ...resources, memory: '3781964Ki' },
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
      condition('UnderVoltage', 'False', 'SupplyIsFine', 'no under-voltage since the machine booted'),
      condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'),
    ],
    addresses: [
      { type: 'InternalIP', address: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}` },
      { type: 'Hostname', address: nodeName(index) },
    ],
    nodeInfo: nodeInfo(index),
    images: Array.from({ length: 50 }, (_, image) => ({
      names: [
        `registry.example.org/team-${image % 7}/service-${image}@sha256:${hex(sameImages ? 0 : index, image)}`,
        `registry.example.org/team-${image % 7}/service-${image}:1.${image}.0`,
      ],
      sizeBytes: 10_000_000 + image * 1_234_567,
    })),
  }
}

function hex(index: number, image: number): string {
  return (index * 50 + image).toString(16).padStart(8, '0').repeat(8)
}

function nodeInfo(index: number) {
  return {
    machineID: hex(index, 0).slice(0, 32),
    systemUUID: hex(index, 1).slice(0, 32),
    bootID: '4f7a1e62-95f5-4d0c-9f0e-5b9f9a6f3c11',
    kernelVersion: '6.6.31+rpt-rpi-v8',
    osImage: 'Debian GNU/Linux 12 (bookworm)',
    containerRuntimeVersion: 'docker://27.1.1',
    kubeletVersion: 'v1.32.0',
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: 'arm64',
  }
}

function podStatus(): PodStatus {
  const time = '2026-01-01T00:00:00Z'
  const ready = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']
  return {
    phase: 'Running',
    startTime: time,
    podIP: '10.244.0.5',
    podIPs: [{ ip: '10.244.0.5' }],
    hostIP: '192.168.1.20',
    conditions: ready.map((type) => ({ type, status: 'True', lastTransitionTime: time })),
    containerStatuses: [
      {
        name: 'main',
        image: 'registry.example.org/team-1/service-1:1.1.0',
        imageID: `docker-pullable://registry.example.org/team-1/service-1@sha256:${hex(1, 1)}`,
        containerID: `docker://${hex(2, 2)}`,
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: time } },
      },
    ],
  }
}
