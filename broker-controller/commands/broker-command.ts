/** `bramble-controller broker configuration`: the files of an external MQTT server, copied to where it reads them. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { systemClock as clock } from '../../daemon/clock.ts'
import { storyOf } from '../../daemon/log.ts'
import { installServerFiles, mqttServerFolder, sourceVersion } from '../broker/mosquitto/installed-files.ts'
import { brokerRow } from './command-table.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** A node that joins waits for its rights no longer than this: its first messages are dropped until then. */
const lookMs = 500

/** `argv`: what follows `broker`. The exit code. */
export async function brokerCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(brokerRow, argv, output, ({ args: [folder = ''], values }) => {
    if (values.for === undefined) return 'Name the server with --for mosquitto'
    const source = mqttServerFolder(resolve(values['data-dir']))
    const target = resolve(folder)
    const pidFile = values['pid-file']
    return values.watch
      ? () => watchFiles(source, target, pidFile, output)
      : async () => installed(await installOnce(source, target, pidFile), target)
  })
}

/** Files that were changed in the folder of the server itself are replaced after this time. */
const wholeMs = 60_000

/** Notifies the server if a file changed. */
async function installOnce(source: string, target: string, pidFile: string | undefined): Promise<readonly string[]> {
  const written = await installServerFiles(source, target)
  if (written.length > 0 && pidFile !== undefined) await reloadServer(pidFile)
  return written
}

/** Until the signal aborts. An error is printed once, and tried again: the controller or the server may be away. */
async function watchFiles(
  source: string,
  target: string,
  pidFile: string | undefined,
  { signal, stdout, stderr }: CommandOutput,
): Promise<string> {
  let printed = ''
  /** Files were replaced, and the server was not notified yet. */
  let isDue = false
  let copied = { version: '', atMs: Number.NEGATIVE_INFINITY }
  for (; !signal.aborted; await clock.sleep(lookMs, signal)) {
    try {
      const version = await sourceVersion(source)
      const nowMs = clock.monotonicMs()
      if (version === copied.version && !isDue && nowMs - copied.atMs < wholeMs) continue
      const written = await installServerFiles(source, target)
      copied = { version, atMs: nowMs }
      isDue ||= written.length > 0
      if (written.length > 0) stdout(installed(written, target))
      if (isDue && pidFile !== undefined) await reloadServer(pidFile)
      isDue = false
      printed = ''
    } catch (error) {
      const story = storyOf(error)
      if (story !== printed) stderr(`${story}\n`)
      printed = story
    }
  }
  return ''
}

function installed(written: readonly string[], target: string): string {
  return written.length === 0 ? `${target} is current.\n` : `${target}: ${written.join(', ')} written.\n`
}

/** The kernel may have given the number to another program since the file was written. */
async function reloadServer(pidFile: string): Promise<void> {
  const pid = Number((await readFile(pidFile, 'utf8').catch(() => '')).trim())
  const name = pid > 0 ? await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '') : ''
  if (name.trim() !== 'mosquitto') {
    throw new Error(`Mosquitto was not notified: no process of ${pidFile} runs. It reads the files at its start`)
  }
  process.kill(pid, 'SIGHUP')
}
