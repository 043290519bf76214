/** The field `homeAssistant` of the configuration. */
import { type Described, list, object, oneOf, optional, text } from '../../../api/schema.ts'
import { parseDuration } from '../../../daemon/duration.ts'
import { type HouseholdBroker, householdBroker, householdBrokerFields } from '../household/household-broker.ts'

/** Those of a machine. `update` is not a button of its own: the update entity can then install. */
export const machineButtons = ['drain', 'uncordon', 'restart', 'update'] as const
export type MachineButton = (typeof machineButtons)[number]

/** That of the fleet: its update entity can then install. */
export const fleetButton = 'rollout'
export type HouseholdButton = MachineButton | typeof fleetButton

export const HomeAssistantSchema = object({
  ...householdBrokerFields,
  server: text,
  fleetName: optional(text),
  discoveryPrefix: optional(text),
  topicPrefix: optional(text),
  publishInterval: optional(text),
  buttons: optional(list(oneOf(...machineButtons, fleetButton))),
})
export type HomeAssistantFile = Described<typeof HomeAssistantSchema>

export type HomeAssistantSettings = {
  readonly broker: HouseholdBroker
  /** Distinguishes the fleets on one broker; part of all identifiers. */
  readonly fleetName: string
  /** Prefix of Home Assistant's discovery topics. */
  readonly discoveryPrefix: string
  /** Prefix of this fleet's topics: states and buttons. */
  readonly topicPrefix: string
  /** Readings of a machine are published at most this often. */
  readonly publishIntervalMs: number
  readonly buttons: readonly HouseholdButton[]
}

const defaultIntervalMs = 30_000
const leastIntervalMs = 1_000
/** MQTT allows 65,535 bytes; brokers and people have less patience. */
const longestPrefix = 128
/** Prefix of the nodes' own protocol (api/topics.ts): both may use one broker. */
const nodesPrefix = 'bramble/v1'

/** Adds what is wrong to `problems`. Undefined: Home Assistant is not configured, or its broker cannot be read. */
export function homeAssistantSettings(
  file: HomeAssistantFile | undefined,
  problems: string[],
): HomeAssistantSettings | undefined {
  if (file === undefined) return undefined
  const path = 'homeAssistant'
  const { fleetName = 'bramble', discoveryPrefix = 'homeassistant', publishInterval, buttons = [] } = file
  const { topicPrefix = `bramble/${fleetName}` } = file
  const check = (fine: boolean, problem: string) => {
    if (!fine) problems.push(`${path}.${problem}`)
  }
  check(
    /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/.test(fleetName),
    `fleetName: ${JSON.stringify(fleetName)} must be lower case letters, digits and -, at most 32`,
  )
  for (const [name, prefix] of Object.entries({ discoveryPrefix, topicPrefix })) {
    check(
      isTopicPrefix(prefix),
      `${name}: ${JSON.stringify(prefix)} must be letters, digits, _ and -, with / between them, at most ${longestPrefix}`,
    )
  }
  check(!isWithin(topicPrefix, nodesPrefix), `topicPrefix: ${nodesPrefix} belongs to the nodes`)
  check(!isWithin(topicPrefix, discoveryPrefix), 'topicPrefix: must not be below discoveryPrefix')
  const publishIntervalMs = publishInterval === undefined ? defaultIntervalMs : parseDuration(publishInterval)
  check(
    publishIntervalMs !== undefined && publishIntervalMs >= leastIntervalMs,
    `publishInterval: ${JSON.stringify(publishInterval)} must be a duration of at least 1s (like 30s or 5m)`,
  )
  const broker = householdBroker(file, path, problems)
  if (broker === undefined || publishIntervalMs === undefined) return undefined
  return { broker, fleetName, discoveryPrefix, topicPrefix, publishIntervalMs, buttons: [...new Set(buttons)] }
}

/** Names of topics without what is special in MQTT, in a template of Home Assistant, or on a screen. */
export function isTopicPrefix(text: string): boolean {
  return text.length <= longestPrefix && /^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/.test(text)
}

function isWithin(topic: string, prefix: string): boolean {
  return topic === prefix || topic.startsWith(`${prefix}/`)
}
