/** The configuration of one controller for another one of its fleet. */
import type { ControllerConfiguration, ControllerConfigurationFile } from '../configuration/configuration.ts'

/** The file, with what was given as options, and without what belongs to one machine. Ports that the system picked are left out. */
export function settingsOfOthers(
  { etcd, listen }: Pick<ControllerConfiguration, 'etcd' | 'listen'>,
  file: ControllerConfigurationFile,
): ControllerConfigurationFile {
  const { bindAddress: _bind, advertiseAddress: _advertise, hosts: _hosts, auditLogPath: _audit, ...fleet } = file
  const { dashboardCertFile: _certificate, dashboardKeyFile: _key, ...shared } = fleet
  return {
    ...shared,
    ...(listen.apiPort !== 0 && { apiPort: listen.apiPort }),
    ...(listen.mqttPort !== 0 && { mqttPort: listen.mqttPort }),
    ...(etcd && {
      etcdServers: etcd.servers,
      etcdPrefix: etcd.prefix,
      ...(etcd.caFile !== undefined && { etcdCAFile: etcd.caFile }),
      ...(etcd.certFile !== undefined && { etcdCertFile: etcd.certFile }),
      ...(etcd.keyFile !== undefined && { etcdKeyFile: etcd.keyFile }),
    }),
  }
}
