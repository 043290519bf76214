/** What arrives from the broker of the household. Any client of it may have sent it: decoded, bounded, and never more than asked for. */
import { allowsRemoteReboot } from '../../../api/node/reboot-annotations.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { HouseholdMessage } from '../household/household-link.ts'
import { keysAnnouncedBy } from './discovery.ts'
import type { HomeAssistantSettings, MachineButton } from './home-assistant-settings.ts'
import { announcedDevice, birthTopic, commandIn, isFleetCommand } from './topics.ts'
import type { WatchedFleet } from './watched-fleet.ts'

export type HouseholdInboxNeeds = {
  readonly fleet: Pick<WatchedFleet, 'node'>
  readonly buttons: { press(nodeName: string, button: MachineButton): void; pressFleet(): void }
  readonly limited: LimitedLog
}

export interface HouseholdInbox {
  receive(message: HouseholdMessage): void
  /** The devices that were found announced, with the keys of their entities. Nothing more is collected from then on. */
  takeAnnounced(): ReadonlyMap<string, ReadonlySet<string>>
  /** Whether Home Assistant has started since it was asked last; at most once in ten seconds. */
  takeBirth(nowMs: number): boolean
}

/** A broker that holds more announcements below this fleet's name was filled by another client. */
const mostAnnounced = 20_000
const betweenBirthsMs = 10_000

export function householdInbox(
  { fleet, buttons, limited }: HouseholdInboxNeeds,
  settings: HomeAssistantSettings,
): HouseholdInbox {
  let announced: Map<string, ReadonlySet<string>> | undefined = new Map()
  let isBorn = false
  let bornMs = Number.NEGATIVE_INFINITY

  const collect = (id: string, body: Buffer) => {
    if (announced === undefined || body.length === 0 || announced.size >= mostAnnounced) return
    announced.set(id, keysAnnouncedBy(body.toString()))
  }

  return {
    receive({ topic, body, isRetained }) {
      const id = announcedDevice(topic, settings)
      if (id !== undefined) return collect(id, body)
      // Published at an unknown time: no one presses a button now.
      if (isRetained) return
      if (topic === birthTopic(settings.discoveryPrefix)) {
        isBorn = isBorn || body.toString() === 'online'
        return
      }
      const word = body.subarray(0, longestCommand).toString()
      if (isFleetCommand(topic, word, settings)) {
        limited.info('pressed for the fleet', 'Button pressed', { button: word })
        return buttons.pressFleet()
      }
      const command = commandIn(topic, word, settings)
      const found = command && fleet.node(command.id)
      const node = found?.metadata.name
      const isOffered = found !== undefined && (command?.button !== 'restart' || allowsRemoteReboot(found))
      if (command === undefined || node === undefined || !isOffered) {
        limited.warn('command', 'Message of a button ignored', { topic })
        return
      }
      limited.info(`pressed ${node}`, 'Button pressed', { node, button: command.button })
      buttons.press(node, command.button)
    },
    takeAnnounced() {
      const found = announced ?? new Map<string, ReadonlySet<string>>()
      announced = undefined
      return found
    },
    takeBirth(nowMs) {
      if (!isBorn || nowMs - bornMs < betweenBirthsMs) return false
      isBorn = false
      bornMs = nowMs
      return true
    },
  }
}

const longestCommand = 64
