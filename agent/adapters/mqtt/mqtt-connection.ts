/** The loop that keeps one connection to the broker. What is published and received on it is the session's. */
import { unlessAborted, withOwnSignal } from '../../../daemon/aborted.ts'
import { connectionFailures } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { judgingMs, type KnownTime } from '../../../daemon/server-check.ts'
import type { NodeCredentials } from '../../node/certificate/certificate-manager.ts'
import { type ServerChoice, serverChoice } from '../../node/connection/controller-servers.ts'
import type { ControllerTerms } from '../../node/connection/controller-terms.ts'
import { type LinkGuard, linkGuard } from '../../node/connection/link-guard.ts'
import { linkOutages } from '../../node/connection/link-outages.ts'
import type { NetworkState } from '../../node/connection/network-state.ts'
import { againWhenNetworkComesUp, networkWatch, reconnectWaitMs } from '../../node/connection/reconnect-wait.ts'
import { replacedLinks } from '../../node/connection/replaced-links.ts'
import { readNetworkState } from '../kernel/network-changes.ts'
import { type MessageListener, type MqttLink, type MqttLinkSettings, openLink } from './mqtt-link.ts'

export type MqttConnectionNeeds = {
  readonly terms: Pick<ControllerTerms, 'failed' | 'graceMs' | 'keepaliveSeconds'>
  readonly session: ConnectionSession
  readonly will: MqttLinkSettings['will']
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Default: MQTT over TLS. */
  readonly transport?: MqttTransport
}

/** How the broker is reached, and the state of the network that leads to it. */
export type MqttTransport = {
  readonly openLink: typeof openLink
  readonly networkState: (root: string) => NetworkState
}

const overTls: MqttTransport = { openLink, networkState: readNetworkState }

export type MqttConnectionSettings = {
  readonly nodeName: string
  /** `mqtts://HOST:PORT`. */
  readonly mqttUrl: string
  /** URLs of all controllers, at least one; undefined: `mqttUrl` is the only one. */
  readonly mqttServers?: (() => readonly string[]) | undefined
  /** PEM. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
  /** The date for the check of the broker's certificate, where this machine's clock may be wrong. */
  readonly knownTime?: KnownTime
  /** The broker closes the connection after one and a half times this without a packet. */
  readonly keepaliveSeconds?: number
  /** The root of the machine's files. */
  readonly root?: string
}

export interface ConnectionSession {
  /** Before each attempt. */
  connecting(): void
  readonly receive: MessageListener
  /** The broker has accepted the connection: publishes and subscribes. Rejects with the link's error. */
  greet(link: MqttLink): Promise<void>
  open(link: MqttLink, guard: LinkGuard): void
  /** The agent stops. Never rejects. */
  stop(link: MqttLink): Promise<void>
  closed(): void
  /** Epoch of the controller on this connection; undefined before its first message. */
  readonly epoch: string | undefined
}

export interface MqttConnection {
  /** Closes the present connection and opens one with these credentials. */
  use(credentials: NodeCredentials): void
  /** Connects, and connects again, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
}

/** The longest wait where several controllers are tried: a standby leads 15 s after the loss, and its closed port costs it little. */
const severalCeilingMs = 4_000
/** Timeout of a connection to one of several controllers: the machine of one may be gone and not answer at all. */
const severalConnectMs = 5_000

/** A connection must last this long before its loss counts as a first failure: else two agents of one name would race. */
const stableMs = 10_000

type Failures = ReturnType<typeof connectionFailures>

export function mqttConnection(needs: MqttConnectionNeeds, settings: MqttConnectionSettings): MqttConnection {
  const { terms, session, will, clock, random, log, transport = overTls } = needs
  let credentials: NodeCredentials = settings
  let reconnect: () => void = () => undefined
  const choice = serverChoice(settings.mqttServers ?? (() => [settings.mqttUrl]))
  const outages = linkOutages({
    url: choice.current,
    certificate: () => credentials.certificate,
    nowMs: () => judgingMs(settings.knownTime, clock.wallMs()),
    clock,
    log,
  })
  const replaced = replacedLinks({ clock, log })
  const network = networkWatch({ clock, random, network: () => transport.networkState(settings.root ?? '/') })

  const open = (signal: AbortSignal): Promise<MqttLink> => {
    const { keepaliveSeconds } = terms
    // Each attempt uses the credentials of its time: they may change while one hangs.
    const attempt = (own: AbortSignal) =>
      transport.openLink(
        linkSettings({ keepaliveSeconds, ...settings, ...credentials }, choice, will),
        session.receive,
        own,
      )
    return againWhenNetworkComesUp(network, attempt, signal)
  }

  /** Resolves with what `ended` gives. */
  const keep = async <T>(link: MqttLink, ended: Promise<T>, signal: AbortSignal): Promise<T | undefined> => {
    await session.greet(link)
    if (signal.aborted) return undefined
    outages.over()
    choice.worked()
    const guard = linkGuard({ clock, network, sentData: link.sentData, hasAddress: link.hasAddress })
    session.open(link, guard)
    return await whileGuarded(link, guard, ended)
  }

  /** One connection, from the attempt to its end: resolves with what ended it. Rejects if there was none. */
  const connectOnce = async (signal: AbortSignal): Promise<Error | 'renewed'> => {
    const renewed = new Promise<'renewed'>((resolve) => {
      reconnect = () => resolve('renewed')
    })
    session.connecting()
    const link = await open(signal)
    try {
      const ended = await unlessAborted(keep(link, Promise.race([link.ended, renewed]), signal), signal)
      if (ended === 'renewed') await link.close()
      if (ended !== undefined) return ended
    } catch (cause) {
      link.abandon(new Error('Connection not opened', { cause }))
      throw cause
    }
    await session.stop(link)
    await link.close()
    return new Error('Stopped')
  }

  /** `again`: the next attempt does not wait. */
  const attempt = async (failures: Failures, signal: AbortSignal): Promise<'again' | 'wait'> => {
    const triedMs = clock.monotonicMs()
    try {
      const ended = await connectOnce(signal)
      if (ended === 'renewed') {
        failures.reset()
        return 'again'
      }
      const lastedMs = clock.monotonicMs() - triedMs
      failures.ended(lastedMs)
      if (signal.aborted) return 'wait'
      outages.lost(ended, lastedMs)
      replaced.lost({ lastedMs, epoch: session.epoch })
    } catch (error) {
      terms.failed(error)
      if (!signal.aborted) outages.failed(error)
      // Another controller may lead by now: each is tried before the wait.
      if (!choice.failed()) return 'again'
      failures.refused()
    } finally {
      session.closed()
    }
    return 'wait'
  }

  return {
    use(next) {
      credentials = next
      reconnect()
    },
    async run(signal) {
      const failures = connectionFailures(stableMs)
      while (!signal.aborted) {
        if ((await attempt(failures, signal)) === 'again') continue
        const mostMs = choice.isOneOfSeveral() ? severalCeilingMs : Number.POSITIVE_INFINITY
        const waitMs = Math.min(mostMs, reconnectWaitMs(failures.count, terms.graceMs, random))
        if (await network.cameUpWithin(waitMs, signal)) failures.reset()
      }
    },
  }
}

/** Abandons a link that its guard finds dead, until `ended` settles. */
function whileGuarded<T>(link: MqttLink, guard: LinkGuard, ended: Promise<T>): Promise<T> {
  return withOwnSignal(undefined, async (own) => {
    void guard.run(own.signal).then((dead) => dead && link.abandon(dead))
    try {
      return await ended
    } finally {
      own.abort()
    }
  })
}

function linkSettings(
  settings: MqttConnectionSettings & { readonly keepaliveSeconds: number },
  choice: ServerChoice,
  will: MqttLinkSettings['will'],
): MqttLinkSettings {
  const { hostname, port } = new URL(choice.current())
  const { ca, certificate, key, nodeName, keepaliveSeconds, knownTime, root } = settings
  // Only in a URL an IPv6 address has brackets.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return {
    host,
    port: Number(port || 8883),
    clientId: nodeName,
    ca,
    certificate,
    key,
    knownTime,
    keepaliveSeconds,
    ...(choice.isOneOfSeveral() && { connectMs: severalConnectMs }),
    ...(root !== undefined && { root }),
    will,
  }
}
