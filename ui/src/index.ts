// Registers the extension: the entry point that Argo CD loads.

import {Clusters} from './components/clusters';
import {HubPage} from './components/hub';
import {StatusPanel} from './components/panel';
import {SetTab, WorkTab} from './components/works';
import {GROUP, SET, WORK} from './fleet';
import {PAGE} from './hub';

interface ExtensionsApi {
    registerResourceExtension?(
        component: unknown,
        group: string,
        kind: string,
        title: string,
        options: {icon: string},
    ): void;
    registerSystemLevelExtension?(component: unknown, title: string, path: string, icon: string): void;
    registerStatusPanelExtension?(component: unknown, title: string, id: string, flyout: unknown): void;
}

const api = (window as {extensionsAPI?: ExtensionsApi}).extensionsAPI;
if (api === undefined) {
    console.error('argocd-ocm-cmp: this Argo CD does not support UI extensions: extensionsAPI is missing');
} else {
    const tab = {icon: 'fa-sitemap'};
    api.registerResourceExtension?.(WorkTab, GROUP, WORK, 'OBJECTS', tab);
    api.registerResourceExtension?.(SetTab, GROUP, SET, 'OBJECTS', tab);
    api.registerStatusPanelExtension?.(StatusPanel, 'MANAGED CLUSTERS', 'argocd-ocm-cmp', Clusters);
    api.registerSystemLevelExtension?.(HubPage, 'Managed clusters', `/${PAGE}`, tab.icon);
}
