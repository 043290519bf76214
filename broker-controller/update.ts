/** Updates of the controller as a program of its own, which only the package brings: an update never replaces what starts and judges it. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { apiClient } from '../daemon/api-client.ts'
import { systemClock } from '../daemon/clock.ts'
import { openLog, storyOf } from '../daemon/log.ts'
import { printText, readArguments, type Values } from '../daemon/process/command-line.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { version } from '../daemon/process/version.ts'
import { readableDisk } from '../daemon/updates/file-disk.ts'
import { installRelease } from '../daemon/updates/install-release.ts'
import { debianArchitecture, readBase, readKeys } from '../daemon/updates/package-files.ts'
import { readUnit, restartUnit } from '../daemon/updates/program-unit.ts'
import type { ReleaseManifest } from '../daemon/updates/release-manifest.ts'
import { commitTrial, committedVersion, prepareStart } from '../daemon/updates/start-version.ts'
import { type TrialWatch, watchTrial } from '../daemon/updates/trial-judge.ts'
import { loadUpdateState, saveVerdict, type UpdateFolder, versionPath } from '../daemon/updates/update-folder.ts'
import { withUpdateLock } from '../daemon/updates/update-lock.ts'
import type { SeenBefore } from '../daemon/updates/update-state.ts'
import { updateStatusText } from '../daemon/updates/update-status.ts'
import { adminSocketPath, requestLeaderStatus } from './commands/connection/admin-socket.ts'
import { kubeconfigPlace, readKubeconfig } from './commands/connection/kubeconfig.ts'
import { controllerServers } from './commands/refuse-on-standby.ts'
import { type ControllerTrialHistory, judgeController, nothingSeenOfController } from './updates/controller-verdict.ts'
import { viewOfFleet } from './updates/fleet-view.ts'
import { standbyVersions, whyLeaderWaits } from './updates/standby-versions.ts'
import { backUpBeforeTrial } from './updates/trial-backup.ts'
import {
  controllerUpdateDefaults,
  controllerUpdateProgram,
  controllerTrialMark as trialMark,
} from './updates/update-table.ts'

type Given = Values<(typeof controllerUpdateProgram)['options']>

const unit = 'bramble-controller.service'
const lockFile = '/run/bramble-controller/update.lock'

const output = {
  stdout: (text: string) => void process.stdout.write(text),
  stderr: (text: string) => void process.stderr.write(text),
}
// What `start` prints to stdout is the folder.
const log = openLog({ level: 'info', format: 'journal', write: output.stderr })
const stopping = new AbortController()

async function main(argv: readonly string[]): Promise<number> {
  if (argv[0] === '--version')
    return printText({ want: 'help', text: `bramble-controller-update ${version}\n` }, output)
  const line = readArguments(controllerUpdateProgram, argv)
  if (line.want !== 'act') return printText(line, output)
  const { values, form, args } = line
  try {
    await mkdir(dirname(lockFile), { recursive: true, mode: 0o755 })
    switch (form) {
      case 'status':
        output.stdout(updateStatusText(await loadUpdateState(updatesOf(values)), await ownBase()))
        return exitCode.fine
      case 'start':
        return await start(values)
      case 'committed':
        output.stdout(await committedFolder(values))
        return exitCode.fine
      case 'judge':
        await judge(values)
        return exitCode.fine
      case 'install FOLDER':
        output.stdout(`${await install(values, args[0] ?? '')}\n`)
        return exitCode.fine
    }
  } catch (error) {
    output.stderr(`bramble-controller-update: ${storyOf(error)}\n`)
    return exitCode.failed
  }
}

/** No file of the data directory is put back: the store keeps its format on trial, and what was written meanwhile is kept. */
function updatesOf(values: Given): UpdateFolder {
  const { folder } = controllerUpdateDefaults
  return { disk: readableDisk, log, folder, dataFolder: values['data-dir'], names: [] }
}

const ownBase = () => readBase(controllerUpdateDefaults.package, 'bramble-controller')

async function start(values: Given): Promise<number> {
  const updates = updatesOf(values)
  const release = await withUpdateLock(lockFile, async () => prepareStart(updates, await ownBase()))
  const { trial } = await loadUpdateState(updates)
  if (release !== undefined && release.digest === trial?.digest) {
    await writeFile(trialMark, release.digest)
    // The unit that starts next runs as another user, and leaves the format of the store if the file exists.
    await chmod(trialMark, 0o644)
  } else await rm(trialMark, { force: true })
  if (release !== undefined) output.stdout(`${versionPath(updates, release)}\n`)
  return exitCode.fine
}

/** With the end of the line; empty: that of the package. */
async function committedFolder(values: Given): Promise<string> {
  const updates = updatesOf(values)
  const release = await committedVersion(updates, await ownBase())
  return release === undefined ? '' : `${versionPath(updates, release)}\n`
}

async function fleetView(values: Given) {
  const { path, context } = kubeconfigPlace(undefined, values['data-dir'])
  return viewOfFleet(apiClient(await readKubeconfig(path, context)))
}

async function judge(values: Given): Promise<void> {
  const updates = updatesOf(values)
  const trialMs = (values['trial-seconds'] ?? usualTrialSeconds) * 1000
  const idleMs = (values['idle-seconds'] ?? usualIdleSeconds) * 1000
  const times = { trialMs, idleMs, longestMs: longestOverTrial * (trialMs + idleMs) }
  const watch: TrialWatch<typeof nothingSeenOfController, ControllerTrialHistory> = {
    nothingSeen: nothingSeenOfController,
    loadState: () => loadUpdateState(updates),
    started: () => readFile(trialMark, 'utf8').catch(() => undefined),
    look: async () => ({ unit: await readUnit(unit), ...(await fleetView(values)) }),
    judge: (history, look, { wasConnected: wasWorking, nodes: connectedNodes = [] }) =>
      judgeController(history, look, { ...times, wasWorking, connectedNodes }),
    saveVerdict: (verdict) => saveVerdict(updates, verdict),
    commit: () => withUpdateLock(lockFile, async () => commitTrial(updates, await ownBase())),
    restart: () => restartUnit(unit),
  }
  await watchTrial(watch, Math.min(trialMs / 10, longestPauseMs), systemClock, log, stopping.signal)
  const { trial } = await loadUpdateState(updates)
  if (trial === undefined) await rm(trialMark, { force: true })
}

const usualTrialSeconds = 600
const usualIdleSeconds = 300
const longestOverTrial = 4
const longestPauseMs = 30_000

/** Throws with the reason if the release is refused. */
async function install(values: Given, from: string): Promise<string> {
  const { folder, package: ofPackage, runtimes } = controllerUpdateDefaults
  await makeReadable(folder)
  const { bavail, bsize } = await statfs(folder)
  const machine = {
    program: 'bramble-controller',
    arch: debianArchitecture,
    runtimes: await readdir(runtimes),
    base: await ownBase(),
    freeBytes: bavail * bsize,
    isForced: values.force,
  }
  const see = async (manifest: ReleaseManifest) => {
    const why = values.force ? undefined : await whyNotNow(values, manifest)
    if (why !== undefined) throw new Error(why)
    return seeBefore(values, manifest)
  }
  const keys = await readKeys(ofPackage)
  const updates = updatesOf(values)
  const release = await withUpdateLock(lockFile, () => installRelease({ from, updates, keys, machine, see }))
  const isStopped = values['no-restart'] || (await readUnit(unit)).state === 'stopped'
  if (isStopped) return `The trial of version ${release.version} begins with the next start of bramble-controller.`
  const isStarted = await restartUnit(unit)
  const how = isStarted ? 'is on trial' : 'is on trial, and its first start failed'
  return `Version ${release.version} ${how}. 'bramble-controller-update status' shows how the trial ends.`
}

/**
 * Why this one of several controllers is not updated yet. Undefined: it stands by, is the only one, does not run, or does not answer: an
 * update may be what heals it.
 */
async function whyNotNow(values: Given, manifest: ReleaseManifest): Promise<string | undefined> {
  const ending = AbortSignal.any([stopping.signal, AbortSignal.timeout(answerMs)])
  try {
    return await whyLeaderIsNotNext(values, manifest, ending)
  } catch (error) {
    stopping.signal.throwIfAborted()
    log.warn('It is not known whether this controller leads: it is updated now', { error })
    return undefined
  }
}

const answerMs = 15_000

async function whyLeaderIsNotNext(
  values: Given,
  { version: wanted }: ReleaseManifest,
  ending: AbortSignal,
): Promise<string | undefined> {
  const dataDir = values['data-dir']
  const status = await requestLeaderStatus(adminSocketPath(dataDir), ending)
  if (status?.leads !== true) return undefined
  const { path, context } = kubeconfigPlace(undefined, dataDir)
  const access = await readKubeconfig(path, context)
  const servers = await controllerServers(async () => apiClient(access), ending)
  const { ca } = access
  // This one leads, and is the first.
  return whyLeaderWaits(wanted, await standbyVersions(servers.slice(1), (url) => apiClient({ url, ca })))
}

async function seeBefore(values: Given, manifest: ReleaseManifest): Promise<SeenBefore> {
  const running = (await committedFolder(values)).trim() || controllerUpdateDefaults.package
  const dataDir = values['data-dir']
  // The version that runs makes the backup: it reads the format of its own store.
  const backUp = async (path: string) => {
    const given = ['backup', path, '--data-dir', dataDir]
    await promisify(execFile)(join(running, 'bramble-controller'), given, { timeout: backupMs })
  }
  await backUpBeforeTrial(manifest, { dataDir, folder: controllerUpdateDefaults.folder, backUp })
  const view = await fleetView(values).catch(() => undefined)
  return {
    wasConnected: view?.works ?? false,
    containers: [],
    epoch: '',
    nodes: view?.connectedNodes ?? [],
  }
}

const backupMs = 1_800_000

/** The agent makes the folder above for its owner only, and the controller runs as another user. */
async function makeReadable(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const one of [dirname(folder), folder]) await chmod(one, 0o755)
}

for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stopping.abort())

process.exit(await main(process.argv.slice(2)))
