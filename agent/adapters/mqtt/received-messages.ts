/** Messages of the controller: bytes on a topic → a call of the listener. */
import { type Decoded, decode } from '../../../api/decode.ts'
import { decodeReceivedDesired } from '../../../api/desired.ts'
import { longestFleetMessage } from '../../../api/network/service-endpoints.ts'
import { problemText } from '../../../api/problem.ts'
import { parseJson } from '../../../api/text/json.ts'
import { CallMessageSchema, type ControllerMessage, ControllerMessageSchema } from '../../../api/topics.ts'
import type { Log } from '../../../daemon/log.ts'
import { decodeNetwork } from '../../network/messages/received-network.ts'
import { decodePolicies } from '../../network/messages/received-policies.ts'
import { decodeServices } from '../../network/messages/received-services.ts'
import type { ControlPlaneListener } from '../../node/connection/control-plane.ts'
import { decodeOrders } from '../../pods/volumes/received-orders.ts'
import type { NodeTopics } from './node-topics.ts'

export type ReceivedMessagesNeeds = {
  readonly topics: NodeTopics
  /** Publishes the latest state of the node and its pods again. */
  readonly republish: () => void
  /** The controller on this connection has announced itself. */
  readonly announced: (message: ControllerMessage) => void
  readonly log: Log
}

export interface ReceivedMessages {
  /** Never throws: a message that cannot be decoded is logged and dropped. */
  receive(listener: ControlPlaneListener, topic: string, body: string, isRetained: boolean): void
  /** Epoch of the controller that announced itself on this connection. */
  readonly epoch: string | undefined
  /** The connection has ended. */
  closed(): void
}

export function receivedMessages({ topics, republish, announced, log }: ReceivedMessagesNeeds): ReceivedMessages {
  let epoch: string | undefined

  const receiveCall = (listener: ControlPlaneListener, body: string) => {
    const message = decodedOrLogged(decode(CallMessageSchema, parseJson(body)), topics.calls, log)
    if (message === undefined) return
    if (message.call === 'stats') return listener.stats?.(message)
    if (message.call === 'session') return listener.session?.(message.session ?? '')
    log.debug('Controller requests all reports', { reason: message.reason })
    republish()
  }

  const receiveNetwork = (listener: ControlPlaneListener, body: string) => {
    const message = receivedOrLogged(decodeNetwork, body, topics.network, log)
    if (message !== undefined) listener.network?.(message)
  }

  const receiveDesired = (listener: ControlPlaneListener, body: string) => {
    const message = decodedOrLogged(decodeReceivedDesired(parseJson(body)), topics.desired, log)
    if (message !== undefined) listener.desired(message)
  }

  const receivePolicies = (listener: ControlPlaneListener, body: string) => {
    const message = receivedOrLogged(decodePolicies, body, topics.policies, log)
    if (message !== undefined) listener.policies?.(message)
  }

  const receiveVolumes = (listener: ControlPlaneListener, body: string) => {
    const message = receivedOrLogged(decodeOrders, body, topics.volumes, log)
    if (message === undefined) return
    // Retained from a controller that does not lead any more.
    if (message.epoch === epoch) listener.volumes?.(message)
    else log.debug('Orders for volumes are from another controller', { epoch: message.epoch })
  }

  const receiveServices = (listener: ControlPlaneListener, shard: number, topic: string, body: string) => {
    const message = receivedOrLogged(decodeServices, body, topic, log)
    if (message !== undefined) listener.services?.(shard, message)
  }

  const reportOff = (listener: ControlPlaneListener, { network, policies }: ControllerMessage) => {
    if (network !== true) listener.networkOff?.()
    if (network !== true || policies !== true) listener.policiesOff?.()
  }

  const receiveController = (listener: ControlPlaneListener, body: string, isRetained: boolean) => {
    const message = decodedOrLogged(decode(ControllerMessageSchema, parseJson(body)), topics.controller, log)
    if (message === undefined || message.state === 'lost') return
    announced(message)
    // Behind an external broker the controller may restart while this connection lasts.
    if (epoch !== undefined && epoch !== message.epoch) republish()
    if (epoch !== message.epoch) listener.volumesOff?.()
    epoch = message.epoch
    reportOff(listener, message)
    listener.controllerTime?.(Date.parse(message.time), !isRetained)
    const { apiServers = [], mqttServers = [] } = message
    listener.servers?.({ apiServers, mqttServers })
    if (message.store !== undefined) listener.store?.(message.store)
    if (message.trust !== undefined) listener.trust?.(message.trust)
  }

  return {
    receive(listener, topic, body, isRetained) {
      if (topic === topics.calls) return receiveCall(listener, body)
      if (topic === topics.controller) return receiveController(listener, body, isRetained)
      if (topic === topics.network) return receiveNetwork(listener, body)
      if (topic === topics.policies) return receivePolicies(listener, body)
      if (topic === topics.volumes) return receiveVolumes(listener, body)
      const shard = topics.services.indexOf(topic)
      if (shard >= 0) return receiveServices(listener, shard, topic, body)
      if (topic === topics.desired) receiveDesired(listener, body)
    },
    get epoch() {
      return epoch
    },
    closed() {
      epoch = undefined
    },
  }
}

/** Dropping what cannot be decoded keeps an agent working with a controller of another version. */
function decodedOrLogged<T>(decoded: Decoded<T>, topic: string, log: Log): T | undefined {
  if (decoded.ok) return decoded.value
  log.warn('A message could not be decoded', { topic, problems: decoded.problems.slice(0, 10).map(problemText) })
  return undefined
}

/** As the others; the parts that cannot be used are named and left out. An empty body: the message was withdrawn. */
function receivedOrLogged<T>(
  decoding: (input: unknown) => Decoded<{ readonly message: T; readonly problems: readonly string[] }>,
  body: string,
  topic: string,
  log: Log,
): T | undefined {
  if (body === '') return undefined
  if (body.length > longestFleetMessage) {
    log.warn('A message is too long', { topic, characters: body.length, most: longestFleetMessage })
    return undefined
  }
  const decoded = decodedOrLogged(decoding(parseJson(body)), topic, log)
  if (decoded === undefined) return undefined
  const { message, problems } = decoded
  if (problems.length > 0) log.warn('A part of a message is not used', { topic, problems: problems.slice(0, 10) })
  return message
}
