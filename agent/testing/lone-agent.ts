/** A process that only holds a node's link to the control plane, with its heartbeats, to be killed by a test. Settings: JSON, its argument. */
import { systemClock } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { mqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import { leaseManager } from '../node/registration/lease-manager.ts'

const log = openLog({ level: 'info', format: 'json', write: (line) => process.stdout.write(line) })
const settings = JSON.parse(process.argv[2] ?? '{}')
const link = mqttControlPlane({ clock: systemClock, random: Math.random, log }, settings)
const { signal } = new AbortController()
void leaseManager({ controlPlane: link, clock: systemClock, random: Math.random }).run(signal)
await link.run({ desired: () => undefined }, signal)
