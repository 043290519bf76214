/** `bramble-controller homeassistant --remove`: removes the devices of the fleet from Home Assistant. */
import { systemClock as clock } from '../../daemon/clock.ts'
import { ConfigurationError, readConfigurationFile } from '../../daemon/process/configuration-file.ts'
import { ControllerConfigurationSchema } from '../configuration/configuration.ts'
import {
  type HomeAssistantSettings,
  homeAssistantSettings,
} from '../integrations/home-assistant/home-assistant-settings.ts'
import { removeFromHomeAssistant } from '../integrations/home-assistant/removal.ts'
import { openHousehold } from '../integrations/household/open-household.ts'
import { homeAssistantRow } from './command-table.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `homeassistant`. Gives the exit status. */
export async function homeAssistantCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(homeAssistantRow, argv, output, ({ values: { config, remove } }) => {
    if (!remove) return 'Name what to do: --remove removes the devices of the fleet'
    if (config === undefined) return 'Name the configuration of the controller with --config'
    return async () => removeAll(await settingsIn(config), output)
  })
}

async function settingsIn(path: string): Promise<HomeAssistantSettings> {
  const { homeAssistant } = await readConfigurationFile(path, ControllerConfigurationSchema)
  const problems: string[] = []
  const settings = homeAssistantSettings(homeAssistant, problems)
  if (problems.length > 0) throw new ConfigurationError('The configuration is not valid:', problems)
  if (settings === undefined)
    throw new Error(`There is no homeAssistant in ${path}: name the configuration that had it`)
  return settings
}

async function removeAll(settings: HomeAssistantSettings, { signal }: CommandOutput): Promise<string> {
  const { devices, topics } = await removeFromHomeAssistant(settings, { open: openHousehold, clock }, signal)
  if (topics === 0) return `Nothing of the fleet ${settings.fleetName} is on the broker\n`
  return `Removed ${devices} devices of the fleet ${settings.fleetName} (${topics} retained messages)\n`
}
