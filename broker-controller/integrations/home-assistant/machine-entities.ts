/** The entities of a machine and of the fleet, as Home Assistant wants them described (integrations/mqtt, and one page for each platform). */

export type Entity = {
  readonly platform: 'sensor' | 'binary_sensor' | 'update'
  /** Shown behind the name of the device. */
  readonly name: string
  readonly device_class?: string
  readonly unit_of_measurement?: string
  readonly state_class?: 'measurement'
  readonly entity_category?: 'diagnostic'
  readonly icon?: string
  /** How the value is read from the state; default: the value of the entity's key. */
  readonly value_template?: string
  readonly title?: string
}

const percent = { unit_of_measurement: '%', state_class: 'measurement' } as const
const count = { state_class: 'measurement' } as const
const diagnostic = { entity_category: 'diagnostic' } as const

/** A reading that moves a little all the time is published when it differs by so much from the last one; see `steadyState`. */
export const leastChanges: { readonly [key: string]: number } = {
  cpu: 3,
  memory: 2,
  temperature: 2,
  disk: 1,
  pool: 1,
  load: 0.5,
  // Seconds: the node computes it from two clocks.
  last_boot: 120,
}

/** Published at the interval of readings; a change of any other value is published at once. */
export const readings: ReadonlySet<string> = new Set([
  ...Object.keys(leastChanges),
  ...['pods', 'pods_running', 'pods_waiting'],
  // Its counts change with each node of a rollout. A pause changes the percentage, too, which is published at once.
  'agents_summary',
])

export const machineEntities = {
  // Not `connectivity`: a machine that has contact is not ready while its container engine is down.
  not_ready: { platform: 'binary_sensor', name: 'Not ready', device_class: 'problem' },
  connected: { platform: 'binary_sensor', name: 'Connected', device_class: 'connectivity', ...diagnostic },
  reason: { platform: 'sensor', name: 'Reason', icon: 'mdi:text-box-outline' },
  cordoned: { platform: 'binary_sensor', name: 'Cordoned', icon: 'mdi:traffic-cone', ...diagnostic },
  under_voltage: { platform: 'binary_sensor', name: 'Under-voltage', device_class: 'problem' },
  under_voltage_since_boot: {
    ...{ platform: 'binary_sensor', name: 'Under-voltage since boot', device_class: 'problem' },
    ...diagnostic,
  },
  throttled: { platform: 'binary_sensor', name: 'Throttled', device_class: 'problem' },
  temperature: {
    ...{ platform: 'sensor', name: 'Temperature', device_class: 'temperature' },
    ...{ unit_of_measurement: '°C', state_class: 'measurement' },
  },
  cpu: { platform: 'sensor', name: 'CPU', icon: 'mdi:cpu-64-bit', ...percent },
  memory: { platform: 'sensor', name: 'Memory used', icon: 'mdi:memory', ...percent },
  disk: { platform: 'sensor', name: 'Disk used', icon: 'mdi:harddisk', ...percent },
  pool: { platform: 'sensor', name: 'Pool used', icon: 'mdi:database', ...percent },
  card_wear: { platform: 'sensor', name: 'Card wear', icon: 'mdi:sd', ...percent, ...diagnostic },
  load: { platform: 'sensor', name: 'Load', icon: 'mdi:gauge', ...count, ...diagnostic },
  pods: { platform: 'sensor', name: 'Pods running', icon: 'mdi:cube-outline', ...count },
  version: { platform: 'sensor', name: 'Agent version', icon: 'mdi:tag-outline', ...diagnostic },
  last_boot: { platform: 'sensor', name: 'Last boot', device_class: 'timestamp', ...diagnostic },
  agent_update: {
    ...{ platform: 'update', name: 'Agent', title: 'bramble-agent', ...diagnostic },
    // Other keys than those of Home Assistant are refused by it.
    value_template:
      "{{ {'installed_version': value_json.agent_update, 'latest_version': value_json.latest_version, " +
      "'in_progress': value_json.update_percent is not none, 'update_percentage': value_json.update_percent} | to_json }}",
  },
} as const satisfies { readonly [key: string]: Entity }

/** Values that the template of `agent_update` reads. */
export const updateKeys = ['latest_version', 'update_percent'] as const

export type MachineKey = keyof typeof machineEntities

export const fleetEntities = {
  machines_ready: { platform: 'sensor', name: 'Machines ready', icon: 'mdi:server', ...count },
  machines_total: { platform: 'sensor', name: 'Machines', icon: 'mdi:server-network', ...count },
  machines_not_ready: { platform: 'binary_sensor', name: 'Machines not ready', device_class: 'problem' },
  pods_running: { platform: 'sensor', name: 'Pods running', icon: 'mdi:cube-outline', ...count },
  pods_waiting: { platform: 'sensor', name: 'Pods waiting', icon: 'mdi:cube-off-outline', ...count },
  alerts: { platform: 'sensor', name: 'Alerts', icon: 'mdi:alert-outline', ...count },
  last_backup: { platform: 'sensor', name: 'Last backup', device_class: 'timestamp', icon: 'mdi:backup-restore' },
  backups_failed: { platform: 'sensor', name: 'Volumes with failed backups', icon: 'mdi:database-alert', ...count },
  backups_failing: { platform: 'binary_sensor', name: 'Backups failing', device_class: 'problem' },
  version: { platform: 'sensor', name: 'Controller version', icon: 'mdi:tag-outline', ...diagnostic },
  agents_update: {
    ...{ platform: 'update', name: 'Agents', title: 'bramble-agent', ...diagnostic },
    // A key without a value is refused with the whole state, except that of the percentage (MQTT_JSON_UPDATE_SCHEMA).
    value_template:
      "{{ {'installed_version': value_json.agents_update, 'latest_version': value_json.agents_latest, " +
      "'in_progress': value_json.agents_percent is not none, 'update_percentage': value_json.agents_percent, " +
      "'release_summary': value_json.agents_summary} | to_json }}",
  },
} as const satisfies { readonly [key: string]: Entity }

/** Values that the template of `agents_update` reads. */
export const fleetUpdateKeys = ['agents_update', 'agents_latest', 'agents_percent', 'agents_summary'] as const

/** Those that a device has, of all that it could have. */
export function entitiesOf(isFleet: boolean): { readonly [key: string]: Entity } {
  return isFleet ? fleetEntities : machineEntities
}
