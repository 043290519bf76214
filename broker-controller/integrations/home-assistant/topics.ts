/** The topics on the broker of the household: what this controller publishes, and what it receives. */
import { fleetDevice, isDeviceID } from './device-ids.ts'
import { fleetButton, type HouseholdButton, type MachineButton, machineButtons } from './home-assistant-settings.ts'

/** `online` or `offline`: whether a controller keeps the states current. It is also the topic of the last will. */
export function statusTopic(topicPrefix: string): string {
  return `${topicPrefix}/status`
}

/** All values of a device, as one JSON object. */
export function stateTopic(topicPrefix: string, id: string): string {
  return id === fleetDevice ? `${topicPrefix}/fleet/state` : `${topicPrefix}/machines/${id}/state`
}

/** Where Home Assistant publishes that a button was pressed. */
export function commandTopic(topicPrefix: string, id: string, button: MachineButton): string {
  return `${topicPrefix}/machines/${id}/command/${button}`
}

/** The same for the button of the fleet. It is not below the topics of machines: an access list of the broker may allow those alone. */
export function fleetCommandTopic(topicPrefix: string): string {
  return `${topicPrefix}/fleet/command/${fleetButton}`
}

/** The commands of one button, of all machines or of the fleet. */
export function commandFilter(topicPrefix: string, button: HouseholdButton): string {
  return button === fleetButton ? fleetCommandTopic(topicPrefix) : `${topicPrefix}/machines/+/command/${button}`
}

type AllowedCommands = { readonly topicPrefix: string; readonly buttons: readonly HouseholdButton[] }

/** Whether it is the command of the fleet. The body must be the word that the button was announced with. */
export function isFleetCommand(topic: string, body: string, { topicPrefix, buttons }: AllowedCommands): boolean {
  return topic === fleetCommandTopic(topicPrefix) && body === fleetButton && buttons.includes(fleetButton)
}

/** Undefined: it is not a command of a machine. The body must be the word that the button was announced with. */
export function commandIn(
  topic: string,
  body: string,
  { topicPrefix, buttons }: AllowedCommands,
): { readonly id: string; readonly button: MachineButton } | undefined {
  const start = `${topicPrefix}/machines/`
  if (!topic.startsWith(start)) return undefined
  const [id = '', command, word, ...rest] = topic.slice(start.length).split('/')
  const button = machineButtons.find((one) => one === word)
  if (command !== 'command' || rest.length > 0 || !isDeviceID(id) || button === undefined) return undefined
  return body === button && buttons.includes(button) ? { id, button } : undefined
}

type DiscoveryPlace = { readonly discoveryPrefix: string; readonly fleetName: string }

/** Where the device is announced. Each fleet has a level of its own, so that it finds what it announced. */
export function discoveryTopic({ discoveryPrefix, fleetName }: DiscoveryPlace, id: string): string {
  return `${discoveryPrefix}/device/bramble-${fleetName}/${id}/config`
}

/** All announcements of the fleet. */
export function discoveryFilter(place: DiscoveryPlace): string {
  return discoveryTopic(place, '+')
}

/** The device that a discovery topic of this fleet announces. */
export function announcedDevice(topic: string, place: DiscoveryPlace): string | undefined {
  const [start = '', end = ''] = discoveryFilter(place).split('+')
  if (!topic.startsWith(start) || !topic.endsWith(end)) return undefined
  const id = topic.slice(start.length, -end.length)
  return isDeviceID(id) ? id : undefined
}

/** Home Assistant publishes `online` there when it has started: it has forgotten what there is (the birth message). */
export function birthTopic(discoveryPrefix: string): string {
  return `${discoveryPrefix}/status`
}

/** Whether a controller of the fleet retains messages on this topic. Announcements are apart. */
export function isOwnTopic(topic: string, topicPrefix: string): boolean {
  if (topic === statusTopic(topicPrefix) || topic === stateTopic(topicPrefix, fleetDevice)) return true
  const [start = '', end = ''] = stateTopic(topicPrefix, '+').split('+')
  return topic.startsWith(start) && topic.endsWith(end) && isDeviceID(topic.slice(start.length, -end.length))
}
