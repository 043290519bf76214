/** `bramble-controller maintenance`: security updates and reboots of the machines of the fleet. */
import type { ConfigMap } from '../../../api/config-map.ts'
import { type MaintenanceRow, maintenanceKey, readMaintenanceStatus } from '../../../api/node/fleet-maintenance.ts'
import { apiClient } from '../../../daemon/api-client.ts'
import { rfc3339, systemClock } from '../../../daemon/clock.ts'
import { parseDuration } from '../../../daemon/duration.ts'
import { maintenanceCommands, readMaintenance } from '../../controllers/maintenance/maintenance-object.ts'
import {
  type MaintenanceRules,
  readMaintenanceRules,
  usualMaintenance,
} from '../../controllers/maintenance/maintenance-rules.ts'
import { maintenanceRow } from '../command-table.ts'
import { kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from '../run-command.ts'
import { textTable } from '../text-table.ts'
import { type OperatorApi, operatorMap } from './operator-map.ts'

/** `argv`: what follows `maintenance`. The exit code. Never rejects for what was typed or what the API answers. */
export async function maintenanceCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(maintenanceRow, argv, output, ({ form, values }) => {
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    const api = async (): Promise<OperatorApi> => ({
      client: apiClient(await readKubeconfig(path, context)),
      signal: output.signal,
    })
    switch (form) {
      case 'start': {
        const rules = maintenanceRulesOf(values)
        if (typeof rules === 'string') return rules
        return async () => startMaintenance(rules, await api())
      }
      case 'status':
        return async () => maintenanceText(await maintenanceMap.read(await api()))
      case 'pause':
        return async () => {
          await maintenanceMap.change(maintenanceCommands.pause('Paused by an operator'), await api())
          return 'The maintenance pauses.\n'
        }
      case 'resume':
        return async () => {
          await maintenanceMap.change(maintenanceCommands.resume(rfc3339(systemClock.wallMs())), await api())
          return 'The maintenance goes on.\n'
        }
    }
  })
}

export type MaintenanceOptions = {
  readonly window: string | undefined
  readonly 'per-link': number | undefined
  readonly 'per-zone': number | undefined
  readonly 'at-once': number | undefined
  readonly 'drain-timeout': string | undefined
}

/** The rules, or what is wrong with the options. */
export function maintenanceRulesOf(values: MaintenanceOptions): MaintenanceRules | string {
  const { window, 'per-link': perLink, 'per-zone': perZone, 'at-once': atOnce, 'drain-timeout': drain } = values
  const drainMs = drain === undefined ? undefined : parseDuration(drain)
  if (drain !== undefined && drainMs === undefined) return `--drain-timeout ${drain} must be a duration like 30m`
  return readMaintenanceRules({
    ...usualMaintenance,
    ...(window !== undefined && { window }),
    ...(perLink !== undefined && { perLink }),
    ...(perZone !== undefined && { perZone }),
    ...(atOnce !== undefined && { atOnce }),
    ...(drainMs !== undefined && { drainSeconds: Math.round(drainMs / 1000) }),
  })
}

const noMaintenance = 'No maintenance was started. Start it with bramble-controller maintenance start'
const maintenanceMap = operatorMap({ key: maintenanceKey, noun: 'maintenance', none: noMaintenance })

/** Throws when the API rejects a request. */
export async function startMaintenance(rules: MaintenanceRules, api: OperatorApi): Promise<string> {
  await maintenanceMap.start(maintenanceCommands.start(rules), api)
  return 'The machines are maintained from now on. bramble-controller maintenance status shows what happens.\n'
}

export function maintenanceText(map: ConfigMap | undefined): string {
  const maintenance = map && readMaintenance(map)
  if (map === undefined || maintenance === undefined) return `${noMaintenance}\n`
  if (typeof maintenance === 'string')
    return `The maintenance cannot be used: ${maintenance}. Start it again with bramble-controller maintenance start\n`
  const status = readMaintenanceStatus(map)
  if (status === undefined) return 'The maintenance has not begun: the controller has not decided yet.\n'
  const { phase, message, counts, active, failed, unable } = status
  const { window } = maintenance.rules
  return [
    `${phase}. ${message}\n`,
    `Window: ${window === undefined ? 'at any time' : `${window} UTC`}. `,
    `Of ${counts.nodes} nodes ${counts.securityUpdates} have security updates, ${counts.rebootRequired} require a reboot, ${counts.due} wait.\n`,
    ...rowsText('', [...failed, ...active], counts.failed + counts.active),
    ...rowsText('Not maintained:\n', unable, counts.unable),
  ].join('')
}

function rowsText(title: string, rows: readonly MaintenanceRow[], count: number): readonly string[] {
  if (rows.length === 0) return []
  const isPhased = rows.some(({ phase }) => phase !== '')
  const table = textTable([
    isPhased ? ['NODE', 'PHASE', 'SINCE', 'MESSAGE'] : ['NODE', 'REASON'],
    ...rows.map(({ node, phase, since, message }) => (isPhased ? [node, phase, since, message] : [node, message])),
  ])
  return ['\n', title, table, ...(count > rows.length ? [`and ${count - rows.length} more\n`] : [])]
}
