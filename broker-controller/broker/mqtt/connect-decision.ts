/** Decides whether a client may connect. Its certificate is its identity; client id, user name and password of the CONNECT packet are ignored. */
import type { IConnectPacket } from 'mqtt-packet'
import type { NodeTopic } from '../../../api/topics.ts'
import { mayPublish, type Refusal } from './authorization.ts'
import { type ConnackCode, connackCode } from './mqtt-encoding.ts'
import type { PeerCertificate } from './peer-certificate.ts'

export type LastWill = { readonly topic: NodeTopic; readonly body: string }

export type ConnectDecision =
  | { readonly isAccepted: true; readonly node: string; readonly will: LastWill | undefined }
  | {
      readonly isAccepted: false
      readonly code: ConnackCode
      readonly what: 'connection' | 'last will'
      readonly refusal: Refusal
    }

export type ConnectFacts = {
  readonly certificate: Pick<PeerCertificate, 'user' | 'node'>
  readonly packet: Pick<IConnectPacket, 'will' | 'keepalive'>
  /** Why the certificate was revoked; undefined: it was not. */
  readonly revokedBecause: string | undefined
  /** The longest keep alive that is allowed. */
  readonly keepAliveSeconds: number
}

export function decideConnect({ certificate, packet, ...facts }: ConnectFacts): ConnectDecision {
  const { user, node } = certificate
  const { will, keepalive = 0 } = packet
  if (facts.revokedBecause !== undefined) return notAuthorized('Revoked', facts.revokedBecause)
  if (node === undefined) return notAuthorized('NotANode', `${user} is not a node`)
  const publication = will && { topic: will.topic, qos: will.qos ?? 0, retain: will.retain ?? false }
  const permission = publication && mayPublish(node, publication)
  if (permission?.allowed === false) {
    return { isAccepted: false, code: connackCode.notAuthorized, what: 'last will', refusal: permission }
  }
  if (keepalive === 0 || keepalive > facts.keepAliveSeconds) {
    const reason = `its keep alive is ${keepalive} s, and must be 1 to ${facts.keepAliveSeconds} s`
    const refusal = { allowed: false, code: 'KeepAlive', reason } as const
    return { isAccepted: false, code: connackCode.keepAliveRefused, what: 'connection', refusal }
  }
  return {
    isAccepted: true,
    node,
    will: will && permission && { topic: permission.topic, body: will.payload.toString() },
  }
}

function notAuthorized(code: Refusal['code'], reason: string): ConnectDecision {
  const refusal = { allowed: false, code, reason } as const
  return { isAccepted: false, code: connackCode.notAuthorized, what: 'connection', refusal }
}
