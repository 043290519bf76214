/** `bramble-controller updates`: releases of the agent, and their way through the fleet. */
import type { ConfigMap } from '../../../api/config-map.ts'
import { readStatus, rolloutKey } from '../../../api/node/agent-rollout.ts'
import { apiClient } from '../../../daemon/api-client.ts'
import { rfc3339, systemClock } from '../../../daemon/clock.ts'
import { type RolloutWish, readRollout, rolloutCommands } from '../../controllers/rollouts/rollout-object.ts'
import { type RolloutRules, readRolloutRules, usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import { wishFor } from '../../controllers/rollouts/rollout-wish.ts'
import { releaseFolder } from '../../releases/release-folder.ts'
import { addRelease, listReleases, type ServedRelease } from '../../releases/release-store.ts'
import { updatesRow } from '../command-table.ts'
import { kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from '../run-command.ts'
import { textTable } from '../text-table.ts'
import { type OperatorApi, operatorMap } from './operator-map.ts'
import { readRing } from './ring-option.ts'

/** `argv`: what follows `updates`. The exit code. Never rejects for what was typed or what the API answers. */
export async function updatesCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(updatesRow, argv, output, ({ form, args: [first = ''], values }) => {
    const dataDir = values['data-dir']
    const { path, context } = kubeconfigPlace(values.kubeconfig, dataDir)
    const api = async (): Promise<OperatorApi> => ({
      client: apiClient(await readKubeconfig(path, context)),
      signal: output.signal,
    })
    switch (form) {
      case 'list':
        return async () => releasesTable(await listReleases(dataDir))
      case 'add FOLDER':
        return async () => {
          const { program, version, digest } = await addRelease(first, dataDir)
          if (program === 'bramble-controller')
            return `Release ${version} of the controller is kept (${digest}). On each controller run bramble-controller-update install ${releaseFolder(dataDir, digest)}\n`
          return `Release ${version} is served (${digest}). Start it with bramble-controller updates start ${version}\n`
        }
      case 'start VERSION': {
        const rules = rolloutRulesOf(values)
        if (typeof rules === 'string') return rules
        const isForAgents = values['agents-only']
        return async () => startRollout(wishFor(first, await listReleases(dataDir), rules, isForAgents), await api())
      }
      case 'status':
        return async () => rolloutText(await rolloutMap.read(await api()))
      case 'pause':
        return async () => {
          await rolloutMap.change(rolloutCommands.pause('Paused by an operator'), await api())
          return 'The rollout pauses.\n'
        }
      case 'resume':
        return async () => {
          await rolloutMap.change(rolloutCommands.resume(rfc3339(systemClock.wallMs())), await api())
          return 'The rollout goes on.\n'
        }
    }
  })
}

type RuleOptions = {
  readonly ring: readonly string[]
  readonly 'per-link': number | undefined
  readonly 'per-zone': number | undefined
  readonly 'at-once': number | undefined
  readonly 'failure-count': number | undefined
  readonly 'failure-percent': number | undefined
}

/** The rules, or what is wrong with the options. */
export function rolloutRulesOf(values: RuleOptions): RolloutRules | string {
  const rings = values.ring.map(readRing)
  const wrong = rings.indexOf(undefined)
  if (wrong !== -1) return `--ring ${values.ring[wrong]} must be like canary=1,1h or early=10%,24h or lab=stage=test,2h`
  const { 'per-link': perLink, 'per-zone': perZone, 'at-once': atOnce } = values
  const { 'failure-count': failureCount, 'failure-percent': failurePercent } = values
  return readRolloutRules({
    ...usualRules,
    ...(rings.length > 0 && { rings }),
    ...(perLink !== undefined && { perLink }),
    ...(perZone !== undefined && { perZone }),
    ...(atOnce !== undefined && { atOnce }),
    ...(failureCount !== undefined && { failureCount }),
    ...(failurePercent !== undefined && { failurePercent }),
  })
}

const noRollout = 'No rollout was started. Start one with bramble-controller updates start VERSION'
const rolloutMap = operatorMap({ key: rolloutKey, noun: 'rollout', none: noRollout })

/** Throws when the API rejects a request. */
export async function startRollout(wish: RolloutWish, api: OperatorApi): Promise<string> {
  await rolloutMap.start(rolloutCommands.start(wish), api)
  return `The rollout of ${wish.target.version} begins. bramble-controller updates status shows how far it is.\n`
}

export function rolloutText(map: ConfigMap | undefined): string {
  const rollout = map && readRollout(map)
  if (map === undefined || rollout === undefined) return `${noRollout}\n`
  if (typeof rollout === 'string') return `The rollout cannot be used: ${rollout}. Start another one.\n`
  const { version } = rollout.wish.target
  const status = readStatus(map)
  if (status === undefined) return `The rollout of ${version} has not begun: the controller has not decided yet.\n`
  const { phase, message, rings, stragglers, stragglerCount } = status
  const more = stragglerCount > stragglers.length ? ` and ${stragglerCount - stragglers.length} more` : ''
  return [
    `Release ${version}: ${phase}. ${message}\n\n`,
    textTable([
      ['RING', 'NODES', 'COMMITTED', 'UPDATING', 'FAILED'],
      ...rings.map(({ name, nodes, committed, updating, failed }) => [
        name,
        ...[nodes, committed, updating, failed].map(String),
      ]),
    ]),
    ...(stragglers.length > 0 ? [`\nNot waited for: ${stragglers.join(', ')}${more}\n`] : []),
  ].join('')
}

function releasesTable(releases: readonly ServedRelease[]): string {
  if (releases.length === 0) return 'No releases are served. Add one with bramble-controller updates add FOLDER\n'
  return textTable([
    ['PROGRAM', 'VERSION', 'SEQUENCE', 'FOLLOWS', 'ARCHITECTURES', 'DOWNLOAD', 'DIGEST'],
    ...releases.map(({ program, version, sequence, floor, archs, downloads, digest }) => [
      ...[program, version, String(sequence), `${floor} and later`, archs.join(','), downloadText(downloads), digest],
    ]),
  ])
}

/** The largest of all architectures: `480 kB, 17 kB from 1.4.0`. */
export function downloadText(downloads: ServedRelease['downloads']): string {
  const largest = new Map<string | undefined, number>()
  for (const { fromVersion, size } of downloads) largest.set(fromVersion, Math.max(size, largest.get(fromVersion) ?? 0))
  const sorted = [...largest].sort(([, one], [, other]) => other - one)
  return sorted
    .map(([from, size]) => `${Math.ceil(size / 1000)} kB${from === undefined ? '' : ` from ${from}`}`)
    .join(', ')
}
