/**
 * The discovery message of a device: one for all its entities (`homeassistant/device/…/config`), which Home Assistant reads since 2024.11.
 * With one message for each entity a fleet of 1,000 machines would need 17,000 retained topics, and a machine could be there in part.
 * https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
 */
import { isObject } from '../../../api/text/json.ts'
import { version as release } from '../../../daemon/process/version.ts'
import { deviceID, fleetDevice, shortLine } from './device-ids.ts'
import {
  fleetButton,
  type HomeAssistantSettings,
  type HouseholdButton,
  type MachineButton,
  machineButtons,
} from './home-assistant-settings.ts'
import { entitiesOf, machineEntities } from './machine-entities.ts'
import type { DeviceState } from './machine-state.ts'
import { commandTopic, fleetCommandTopic, stateTopic, statusTopic } from './topics.ts'

export type DeviceFacts = {
  /** Undefined: the fleet itself. */
  readonly nodeName: string | undefined
  readonly model?: string | undefined
  /** Where the dashboard shows it. */
  readonly page?: string | undefined
  /** Its agent restarts it on request. */
  readonly mayRestart?: boolean
}

type DiscoverySettings = Pick<HomeAssistantSettings, 'fleetName' | 'topicPrefix' | 'buttons'>

const longestName = 64
/** What was announced before is read back from the broker: longer texts are not. */
const longestDiscovery = 64 * 1024

/** `announced`: the keys of the entities that the device has. The others of its kind are removed, if they were announced before. */
export function discoveryMessage(
  { nodeName, model, page, mayRestart = false }: DeviceFacts,
  announced: ReadonlySet<string>,
  state: DeviceState,
  settings: DiscoverySettings,
): string {
  const isFleet = nodeName === undefined
  const id = isFleet ? fleetDevice : deviceID(nodeName)
  const { fleetName, topicPrefix } = settings
  const buttons = settings.buttons.filter((button) => button !== 'restart' || mayRestart)
  const { version } = state
  const installing = installingOf(isFleet, id, topicPrefix, buttons)
  const entities = Object.entries(entitiesOf(isFleet)).map(([key, { value_template, ...entity }]) => [
    key,
    announced.has(key)
      ? {
          ...entity,
          ...(entity.platform === 'update' && installing),
          unique_id: uniqueID(fleetName, id, key),
          value_template: value_template ?? `{{ value_json.${key} }}`,
        }
      : // Only the platform: Home Assistant removes the entity.
        { platform: entity.platform },
  ])
  const pressed = isFleet ? [] : pressedButtons.map((button) => [button, buttonOf(button, id, settings, buttons)])
  return JSON.stringify({
    device: {
      identifiers: [deviceIdentifier(fleetName, id)],
      name: isFleet ? `Fleet ${fleetName}` : shortLine(nodeName, longestName),
      manufacturer: 'Bramble',
      model: isFleet ? 'Fleet' : (model ?? 'Machine'),
      ...(typeof version === 'string' && { sw_version: version }),
      ...(page !== undefined && { configuration_url: page }),
      ...(!isFleet && { via_device: deviceIdentifier(fleetName, fleetDevice) }),
    },
    origin: { name: 'Bramble', sw_version: release },
    availability_topic: statusTopic(topicPrefix),
    state_topic: stateTopic(topicPrefix, id),
    components: Object.fromEntries([...entities, ...pressed]),
  })
}

/** What makes the update entity install; undefined: it only shows. */
function installingOf(isFleet: boolean, id: string, topicPrefix: string, buttons: readonly HouseholdButton[]) {
  const button = isFleet ? fleetButton : 'update'
  if (!buttons.includes(button)) return undefined
  const topic = isFleet ? fleetCommandTopic(topicPrefix) : commandTopic(topicPrefix, id, 'update')
  return { command_topic: topic, payload_install: button }
}

type PressedButton = Exclude<MachineButton, 'update'>

const pressedButtons = machineButtons.filter((button): button is PressedButton => button !== 'update')

function buttonOf(button: PressedButton, id: string, settings: DiscoverySettings, buttons: readonly HouseholdButton[]) {
  const platform = 'button'
  if (!buttons.includes(button)) return { platform }
  const texts = buttonTexts[button]
  return {
    ...{ platform, ...texts, entity_category: 'config' },
    unique_id: uniqueID(settings.fleetName, id, button),
    command_topic: commandTopic(settings.topicPrefix, id, button),
    payload_press: button,
  }
}

type ButtonTexts = { readonly name: string; readonly icon?: string; readonly device_class?: 'restart' }

const buttonTexts: { readonly [B in PressedButton]: ButtonTexts } = {
  drain: { name: 'Drain', icon: 'mdi:water-pump' },
  uncordon: { name: 'Uncordon', icon: 'mdi:check-circle-outline' },
  restart: { name: 'Restart', device_class: 'restart' },
}

function deviceIdentifier(fleetName: string, id: string): string {
  return `bramble_${fleetName}_${id}`
}

/** Never changes: Home Assistant keeps history and names of an entity by it. */
function uniqueID(fleetName: string, id: string, key: string): string {
  return `${deviceIdentifier(fleetName, id)}_${key}`
}

/**
 * The keys of the entities that a device has: those with a value. One whose value is not known now stays if it was announced before,
 * because the machine may be lost.
 */
export function announcedKeys(state: DeviceState, before: ReadonlySet<string>, isFleet: boolean): ReadonlySet<string> {
  const keys = Object.keys(entitiesOf(isFleet)).filter((key) => {
    const value = state[key]
    return value === null ? before.has(key) : value !== undefined
  })
  return new Set(keys)
}

/** The keys that a retained discovery message announces. Any text: what is not such a message announces nothing. */
export function keysAnnouncedBy(discovery: string): ReadonlySet<string> {
  if (discovery.length > longestDiscovery) return new Set()
  try {
    const message: unknown = JSON.parse(discovery)
    const components = isObject(message) ? message['components'] : undefined
    if (!isObject(components)) return new Set()
    const keys = Object.entries(components).filter(([, one]) => isObject(one) && 'unique_id' in one)
    return new Set(keys.map(([key]) => key).filter((key) => Object.hasOwn(machineEntities, key)))
  } catch {
    return new Set()
  }
}
