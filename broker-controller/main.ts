/** The command line of bramble-controller: what is wanted, with what configuration, and with what exit status it ends. */
import { randomBytes } from 'node:crypto'
import { systemClock as clock } from '../daemon/clock.ts'

import { openLog, storyOf } from '../daemon/log.ts'
import { printText } from '../daemon/process/command-line.ts'
import { ConfigurationError, readConfigurationFile } from '../daemon/process/configuration-file.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { version } from '../daemon/process/version.ts'
import { openSystemdNotifier } from '../daemon/watchdog/systemd-notifier.ts'
import { runBrokerController } from './assembly/assembly.ts'
import { backupCommand, restoreCommand } from './commands/backup-command.ts'
import { brokerCommand } from './commands/broker-command.ts'
import { certificatesCommand } from './commands/certificates-command.ts'
import { checkpointsCommand } from './commands/checkpoints-command.ts'
import { type ControllerFlags, readControllerCommandLine } from './commands/command-line.ts'
import { dashboardCommand, loginLinkCommand } from './commands/dashboard-command.ts'
import { homeAssistantCommand } from './commands/home-assistant-command.ts'
import { joinControlPlaneCommand } from './commands/join-control-plane-command.ts'
import { kubeconfigCommand } from './commands/kubeconfig-command.ts'
import { notifyCommand } from './commands/notify-command.ts'
import { secretsCommand } from './commands/secrets-command.ts'
import { serviceAccountKeyCommand } from './commands/service-account-key-command.ts'
import { storeCommand } from './commands/store-command.ts'
import { tokenCommand } from './commands/token-command.ts'
import {
  type ControllerConfiguration,
  type ControllerConfigurationFile,
  ControllerConfigurationSchema,
  controllerConfiguration,
  emptyControllerConfiguration,
} from './configuration/configuration.ts'
import { ForeignAuthorityError } from './replicas/foreign-authority.ts'
import { EarlierStoreError, LaterStoreError, SecretsKeyError } from './store/store.ts'

process.exit(await main(process.argv.slice(2), stopSignal()))

async function main(argv: readonly string[], signal: AbortSignal): Promise<number> {
  const wanted = readControllerCommandLine(argv)
  const output = {
    stdout: (text: string) => void process.stdout.write(text),
    stderr: (text: string) => void process.stderr.write(text),
    signal,
    nowMs: clock.wallMs(),
    version,
    randomBytes,
  }
  switch (wanted.want) {
    case 'help':
    case 'refuse':
      return printText(wanted, output)
    case 'token':
      return tokenCommand(wanted.argv, output)
    case 'card': {
      const { cardCommand } = await import('./commands/cards/card-command.ts')
      return cardCommand(wanted.argv, output)
    }
    case 'checkpoints':
      return checkpointsCommand(wanted.argv, output)
    case 'certificates':
      return certificatesCommand(wanted.argv, output)
    case 'kubeconfig':
      return kubeconfigCommand(wanted.argv, output)
    case 'service-account-key':
      return serviceAccountKeyCommand(wanted.argv, output)
    case 'secrets':
      return secretsCommand(wanted.argv, output)
    case 'store':
      return storeCommand(wanted.argv, output)
    case 'join-control-plane':
      return joinControlPlaneCommand(wanted.argv, output)
    case 'login-link':
      return loginLinkCommand(wanted.argv, output)
    case 'dashboard':
      return dashboardCommand(wanted.argv, output)
    case 'top': {
      const { topCommand } = await import('./commands/top/top-command.ts')
      return topCommand(wanted.argv, { ...output, input: process.stdin, output: process.stdout, env: process.env })
    }
    case 'volumes': {
      const { volumesCommand } = await import('./commands/volumes/volumes-command.ts')
      return volumesCommand(wanted.argv, output)
    }
    case 'inventory': {
      const { inventoryCommand } = await import('./commands/inventory/inventory-command.ts')
      return inventoryCommand(wanted.argv, output)
    }
    case 'updates': {
      const { updatesCommand } = await import('./commands/updates/updates-command.ts')
      return updatesCommand(wanted.argv, output)
    }
    case 'maintenance': {
      const { maintenanceCommand } = await import('./commands/updates/maintenance-command.ts')
      return maintenanceCommand(wanted.argv, output)
    }
    case 'homeassistant':
      return homeAssistantCommand(wanted.argv, output)
    case 'notify':
      return notifyCommand(wanted.argv, output)
    case 'broker':
      return brokerCommand(wanted.argv, output)
    case 'simulate': {
      const { simulateCommand } = await import('./commands/simulate-command.ts')
      return simulateCommand(wanted.argv, output)
    }
    case 'backup':
      return backupCommand(wanted.argv, output)
    case 'restore':
      return restoreCommand(wanted.argv, output)
    case 'check':
    case 'run':
      return configured(wanted.want, wanted.flags, signal)
  }
}

async function configured(want: 'run' | 'check', flags: ControllerFlags, signal: AbortSignal): Promise<number> {
  let configuration: ControllerConfiguration
  let file: ControllerConfigurationFile = emptyControllerConfiguration
  try {
    const { config } = flags
    if (config !== undefined) file = await readConfigurationFile(config, ControllerConfigurationSchema)
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
  const service = await openSystemdNotifier(process.env, log)
  try {
    await runBrokerController({ configuration, file, flags, log, service }, signal)
    log.info('Controller stopped')
    return exitCode.fine
  } catch (error) {
    log.error('Controller failed', { error })
    service?.status(`Failed: ${storyOf(error)}`)
    return isFinal(error) ? exitCode.configuration : exitCode.failed
  }
}

/** Starting again would not help. */
function isFinal(error: unknown): boolean {
  if (error instanceof LaterStoreError || error instanceof EarlierStoreError) return true
  if (error instanceof SecretsKeyError || error instanceof ConfigurationError) return true
  return error instanceof ForeignAuthorityError || (error instanceof Error && isFinal(error.cause))
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
