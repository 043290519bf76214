/** The command line of bramble-controller: what is wanted, with what configuration, and with what exit status it ends. */
import { randomBytes } from 'node:crypto'
import { systemClock as clock } from '../daemon/clock.ts'
import { openLog, storyOf } from '../daemon/log.ts'
import { ConfigurationError, readConfigurationFile } from '../daemon/process/configuration-file.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { version } from '../daemon/process/version.ts'
import { openSystemdNotifier } from '../daemon/watchdog/systemd-notifier.ts'
import { runBrokerController } from './assembly.ts'
import { backupCommand, restoreCommand } from './commands/backup-command.ts'
import { certificatesCommand } from './commands/certificates-command.ts'
import { checkpointsCommand } from './commands/checkpoints-command.ts'
import { defaultDataDir, type Flags, help, readCommandLine } from './commands/command-line.ts'
import { tokenCommand } from './commands/token-command.ts'
import {
  type ControllerConfiguration,
  ControllerConfigurationSchema,
  controllerConfiguration,
  emptyControllerConfiguration,
} from './configuration.ts'
import { LaterStoreError } from './store/store.ts'

process.exit(await main(process.argv.slice(2), stopSignal()))

async function main(argv: readonly string[], signal: AbortSignal): Promise<number> {
  const wanted = readCommandLine(argv)
  switch (wanted.want) {
    case 'help':
      process.stdout.write(help)
      return exitCode.fine
    case 'version':
      process.stdout.write(`bramble-controller ${version}\n`)
      return exitCode.fine
    case 'refuse':
      process.stderr.write(`${wanted.why}\nTry 'bramble-controller --help'.\n`)
      return exitCode.usage
    case 'token':
      return tokenCommand(wanted.argv, {
        stdout: (text) => void process.stdout.write(text),
        stderr: (text) => void process.stderr.write(text),
        signal,
        randomBytes,
        defaults: { dataDir: defaultDataDir },
      })
    case 'checkpoints':
      return checkpointsCommand(wanted.argv, commandNeeds(signal))
    case 'certificates':
      return certificatesCommand(wanted.argv, commandNeeds(signal))
    case 'backup':
      return backupCommand(wanted.argv, commandNeeds(signal))
    case 'restore':
      return restoreCommand(wanted.argv, commandNeeds(signal))
    case 'check':
    case 'run':
      return configured(wanted.want, wanted.flags, signal)
  }
}

function commandNeeds(signal: AbortSignal) {
  return {
    stdout: (text: string) => void process.stdout.write(text),
    stderr: (text: string) => void process.stderr.write(text),
    signal,
    nowMs: clock.wallMs(),
    version,
    defaults: { dataDir: defaultDataDir },
  }
}

async function configured(want: 'run' | 'check', flags: Flags, signal: AbortSignal): Promise<number> {
  let configuration: ControllerConfiguration
  try {
    const { config } = flags
    const file =
      config === undefined
        ? emptyControllerConfiguration
        : await readConfigurationFile(config, ControllerConfigurationSchema)
    configuration = controllerConfiguration({ flags, file, isTerminal: process.stdout.isTTY })
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    process.stderr.write(`${storyOf(error)}\n`)
    return exitCode.configuration
  }
  if (want === 'check') {
    process.stdout.write('The configuration is valid\n')
    return exitCode.fine
  }
  const log = openLog({ ...configuration.log, write: (line) => void process.stdout.write(line) })
  try {
    const service = await openSystemdNotifier(process.env, log)
    await runBrokerController({ configuration, flags, log, service }, signal)
    log.info('Controller stopped')
    return exitCode.fine
  } catch (error) {
    log.error('Controller failed', { error })
    return error instanceof LaterStoreError ? exitCode.configuration : exitCode.failed
  }
}

/** The first signal ends everything in order; a second one at once. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(exitCode.failed)
      stop.abort()
    })
  }
  return stop.signal
}
