/** The MQTT broker of a controller that leads: embedded, or an external server that the configuration names. */

import { peerControllerIdentity } from '../../api/identity.ts'
import { issuerOf, onlyAuthority } from '../../certs/client-certificate.ts'
import { issueController } from '../../certs/issue.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import type { Loop } from '../../daemon/run.ts'
import type { Broker, NodeListener } from '../broker/broker.ts'
import { openMqttBroker } from '../broker/mqtt/mqtt-broker.ts'
import { openExternalBroker } from '../broker/mqtt-client/external-broker.ts'
import { controllerMessage } from '../broker/outbox/controller-message.ts'
import { retainedCleanup } from '../broker/outbox/retained-cleanup.ts'
import type { ControllerConfiguration } from '../configuration/configuration.ts'
import { openingPort } from './open-api.ts'
import type { ControllerParts } from './parts.ts'

export interface FleetBroker extends Broker {
  /** The certificates of the controller have changed. */
  renew(): void
  /** While paused, no node and no server is connected. */
  pause(isPaused: boolean): void
  /** Passes messages of nodes to `listener`. Resolves with the port on which nodes connect. Rejects if it cannot be opened. */
  listen(listener: NodeListener): Promise<number>
  /** No message of a node can arrive now: their silence shows nothing. */
  isAway(): boolean
  readonly loops: readonly Loop[]
}

type FleetBrokerParts = Pick<ControllerParts, 'shared' | 'own' | 'registry' | 'revocations' | 'host'>

/** `epoch`: of this start of the controller. */
export async function openFleetBroker(
  { listen, externalBroker, podNetwork }: ControllerConfiguration,
  { shared, own, registry, revocations, host }: FleetBrokerParts,
  epoch: string,
): Promise<FleetBroker> {
  if (externalBroker === undefined) {
    const broker = await openMqttBroker({
      tls: own.tls(),
      clock,
      log: shared.log,
      registry,
      revocations,
      authorities: {
        only: () => onlyAuthority(own.authority().trusted),
        of: (certificate) => issuerOf(certificate, own.authority().trusted),
      },
    })
    return {
      ...broker,
      renew: () => broker.renew(own.tls()),
      listen(listener) {
        const listening = broker.listen({ port: listen.mqttPort, host }, listener)
        return openingPort('MQTT', listen.mqttPort, '--mqtt-port', listening)
      },
      isAway: () => false,
      loops: [],
    }
  }
  const broker = openExternalBroker({
    ...externalBroker,
    tls: () => ({ ca: own.authority().trusted, ...issueController(own.authority(), { nowMs: clock.wallMs() }) }),
    clientId: peerControllerIdentity.user,
    lastWill: () => JSON.stringify(controllerMessage('lost', { epoch, shortLeases: false }, clock.wallMs())),
    clock,
    random: Math.random,
    log: shared.log,
    registry,
  })
  return {
    identifiesSenders: broker.identifiesSenders,
    publish: broker.publish,
    withdraw: broker.withdraw,
    close: broker.close,
    renew: broker.renew,
    pause: broker.pause,
    async listen(listener) {
      broker.listen(listener)
      return externalBroker.port
    },
    isAway: () => !broker.isAnswering,
    loops: [broker, retainedCleanup({ ...shared, broker, hasNetwork: podNetwork !== undefined })],
  }
}
