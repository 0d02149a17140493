"use strict";

// Paths are relative to the page, so that a proxy may put the service below a path of its own.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // The key stays in the memory of this tab.
  persistAuthorization: false,
  // Both would ask a server elsewhere.
  validatorUrl: null,
  oauth2RedirectUrl: null,
});
