/** The errors of a join, each with a remedy, for the person at the machine. */

import type { X509Certificate } from 'node:crypto'
import { statusMessage } from '../../daemon/api-client.ts'
import { codeOf } from '../../daemon/errors.ts'
import { storyOf } from '../../daemon/log.ts'

/** `message` is why joining failed; `remedy` is what to try. Nothing was written. */
export class JoinError extends Error {
  override readonly name = 'JoinError'
  readonly remedy: string

  /** Another machine bears the name. */
  readonly isNameTaken: boolean
  /** The controller has answered the request: asking for it again changes nothing. */
  readonly isFinal: boolean

  constructor(
    message: string,
    remedy: string,
    options: { cause?: unknown; isNameTaken?: boolean; isFinal?: boolean } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : {})
    this.remedy = remedy
    this.isNameTaken = options.isNameTaken ?? false
    this.isFinal = options.isFinal ?? false
  }
}

const newCommand =
  "Create a new join command on the controller with 'bramble-controller token create --print-join-command'"

export function wrongHash(host: string, expected: string, chain: readonly string[]): JoinError {
  const found = chain.length > 1 ? chain.at(-1) : `${chain[0]} (the server's own: it showed no authority)`
  return new JoinError(
    `The authority of ${host} does not have the given hash: expected ${expected}, found ${found}`,
    `${newCommand} and run it unchanged. If the hashes still differ, another server answers at this address: do not continue.`,
  )
}

/** `error` as a failed connection or an `ApiUnreachable` has it: with a code. */
export function unreachable(url: URL, error: unknown): JoinError {
  const code = codeOf(error)
  const { message, remedy } = connectionTrouble(url, code) ?? {
    message: `The controller at ${url.host} cannot be reached: ${storyOf(error)}`,
    remedy: `Check that this is the address of the controller's API and that nothing between here and there blocks it.`,
  }
  return new JoinError(message, remedy, { cause: error })
}

function connectionTrouble(url: URL, code: string): { message: string; remedy: string } | undefined {
  const { host, hostname } = url
  switch (code) {
    case 'ECONNREFUSED':
      return {
        message: `The controller cannot be reached: nothing listens at ${host}`,
        remedy:
          'Check that the controller runs, and that the address and the port are those of its API (default 6443).',
      }
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
      return {
        message: `The controller cannot be reached: ${host} does not answer`,
        remedy: `Check that this machine is on the network ('ping ${hostname}') and that no firewall closes the port.`,
      }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        message: `The controller cannot be reached: no address is known for the name ${hostname}`,
        remedy: "Check the spelling and this machine's DNS, or use the controller's address in place of its name.",
      }
    case 'ECONNRESET':
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED':
    case 'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE':
      return {
        message: `What answers at ${host} is not the controller's API (${code})`,
        remedy: "Check the port: joining uses the API's (default 6443), not the MQTT port.",
      }
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        message: `The controller's certificate does not name ${hostname}`,
        remedy: `Start the controller with '--host ${hostname}', or join by a name or address that it has.`,
      }
    default:
      return undefined
  }
}

/** By this machine's clock one of these certificates has ended; undefined: none has. */
export function clockTrouble(chain: readonly X509Certificate[], nowMs: number): JoinError | undefined {
  const endedMs = chain.map(({ validTo }) => Date.parse(validTo)).find((toMs) => nowMs > toMs)
  if (endedMs === undefined) return undefined
  return new JoinError(
    `A certificate of the controller has expired: it ended at ${instant(endedMs)}, and this machine's clock shows ${instant(nowMs)}`,
    "Set this machine's clock ('timedatectl set-ntp true', or 'date -s'), then join again. If the clock is right, restart the controller: it renews its certificate then.",
  )
}

export function tokenRefused(id: string, body: unknown, skewMs: number | undefined): JoinError {
  const because = statusMessage(body) || 'it gave no reason'
  return new JoinError(
    `The controller refused the token ${id}: ${because}${skewMs === undefined ? '' : `; ${describeSkew(skewMs)}`}`,
    `${newCommand}.`,
  )
}

/** An answer that the API of a fleet does not give at this point. */
export function strangeAnswer(url: URL, doing: string, answer: { status: number; body: unknown }): JoinError {
  const message = statusMessage(answer.body)
  return message === undefined
    ? new JoinError(
        `What answers at ${url.host} is not the API of a fleet: ${doing} gave status ${answer.status} and no Kubernetes object`,
        'Check the address: it is that of the controller, with the port of its API.',
      )
    : new JoinError(
        `The controller did not let this machine in: ${doing} gave "${message}" (status ${answer.status})`,
        'Look at the log of the controller; joining again later does no harm.',
      )
}

/** How much later it is there than here, by the `Date` of an answer; exact to a second. */
export function clockSkewMs(dateHeader: string | undefined, nowMs: number): number | undefined {
  const thereMs = Date.parse(dateHeader ?? '')
  return Number.isNaN(thereMs) ? undefined : thereMs - nowMs
}

export function describeSkew(skewMs: number): string {
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  if (seconds <= 1) return "this machine's clock agrees with the controller's"
  return `this machine's clock is ${seconds} s ${skewMs > 0 ? 'behind' : 'ahead of'} the controller's`
}

function instant(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
